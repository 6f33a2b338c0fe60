"""Doors to other libraries, one file each; the library is imported when its door is used."""
