"""The outermost layer: the command line, storage, tables. Imported by nobody."""
