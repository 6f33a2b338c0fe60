"""The P2010 circadian clock: counts of mRNA by stochastic simulation, and the regression data made of them."""
