"""The sources of what crossfade does, as BibTeX. Which of them an answer used is in `cite`."""

from __future__ import annotations

from crossfade import __version__

Entry = tuple[str, dict[str, str]]  # the kind of the source, and its fields


def _article(author: str, title: str, journal: str, year: str, volume: str, pages: str, doi: str) -> Entry:
    fields = {"author": author, "title": title, "journal": journal, "year": year, "volume": volume, "pages": pages}
    return "article", fields | ({"doi": doi} if doi else {})


SOURCES: dict[str, Entry] = {
    "crossfade": (
        "software",
        {
            "author": "{The crossfade developers}",
            "title": "crossfade: {Bayes} factors by fading one posterior into the other",
            "version": __version__,
        },
    ),
    "grzegorczyk2017": _article(
        "Grzegorczyk, Marco and Aderhold, Andrej and Husmeier, Dirk",
        "Targeting {Bayes} factors with direct-path non-equilibrium thermodynamic integration",
        "Computational Statistics", "2017", "32", "717--761", "10.1007/s00180-017-0721-7",
    ),
    "bennett1976": _article(
        "Bennett, Charles H.", "Efficient estimation of free energy differences from {Monte Carlo} data",
        "Journal of Computational Physics", "1976", "22", "245--268", "10.1016/0021-9991(76)90078-4",
    ),
    "shirts2008": _article(
        "Shirts, Michael R. and Chodera, John D.",
        "Statistically optimal analysis of samples from multiple equilibrium states",
        "The Journal of Chemical Physics", "2008", "129", "124105", "10.1063/1.2978177",
    ),
    "neal2011": (
        "incollection",
        {
            "author": "Neal, Radford M.",
            "title": "{MCMC} using {Hamiltonian} dynamics",
            "booktitle": "Handbook of {Markov} Chain {Monte Carlo}",
            "editor": "Brooks, Steve and Gelman, Andrew and Jones, Galin L. and Meng, Xiao-Li",
            "publisher": "Chapman and Hall/CRC",
            "year": "2011",
            "pages": "113--162",
        },
    ),
    "hoffman2021": (
        "inproceedings",
        {
            "author": "Hoffman, Matthew and Radul, Alexey and Sountsov, Pavel",
            "title": "An adaptive-{MCMC} scheme for setting trajectory lengths in {Hamiltonian} {Monte Carlo}",
            "booktitle": "Proceedings of the 24th International Conference on Artificial Intelligence and Statistics",
            "series": "Proceedings of Machine Learning Research",
            "volume": "130",
            "year": "2021",
            "pages": "3907--3915",
        },
    ),
    "vehtari2021": _article(
        r"Vehtari, Aki and Gelman, Andrew and Simpson, Daniel and Carpenter, Bob and B{\"u}rkner, Paul-Christian",
        r"Rank-normalization, folding, and localization: an improved $\widehat{R}$ for assessing convergence of {MCMC}",
        "Bayesian Analysis", "2021", "16", "667--718", "10.1214/20-BA1221",
    ),
    "vehtari2024": _article(
        "Vehtari, Aki and Simpson, Daniel and Gelman, Andrew and Yao, Yuling and Gabry, Jonah",
        "{Pareto} smoothed importance sampling",
        "Journal of Machine Learning Research", "2024", "25", "1--58", "",
    ),
    "kloek1978": _article(
        "Kloek, Teun and van Dijk, Herman K.",
        "{Bayesian} estimates of equation system parameters: an application of integration by {Monte Carlo}",
        "Econometrica", "1978", "46", "1--19", "10.2307/1913641",
    ),
    "raiffa1961": (
        "book",
        {
            "author": "Raiffa, Howard and Schlaifer, Robert",
            "title": "Applied Statistical Decision Theory",
            "publisher": "Division of Research, Graduate School of Business Administration, Harvard University",
            "address": "Boston",
            "year": "1961",
        },
    ),
    "syed2022": _article(
        r"Syed, Saifuddin and Bouchard-C{\^o}t{\'e}, Alexandre and Deligiannidis, George and Doucet, Arnaud",
        "Non-reversible parallel tempering: a scalable highly parallel {MCMC} scheme",
        "Journal of the Royal Statistical Society: Series B", "2022", "84", "321--350", "10.1111/rssb.12464",
    ),
    "metropolis1953": _article(
        "Metropolis, Nicholas and Rosenbluth, Arianna W. and Rosenbluth, Marshall N. and Teller, Augusta H. "
        "and Teller, Edward",
        "Equation of state calculations by fast computing machines",
        "The Journal of Chemical Physics", "1953", "21", "1087--1092", "10.1063/1.1699114",
    ),
    "gelfand1990": _article(
        "Gelfand, Alan E. and Smith, Adrian F. M.", "Sampling-based approaches to calculating marginal densities",
        "Journal of the American Statistical Association", "1990", "85", "398--409", "10.1080/01621459.1990.10476213",
    ),
    "friel2008": _article(
        "Friel, Nial and Pettitt, Anthony N.", "Marginal likelihood estimation via power posteriors",
        "Journal of the Royal Statistical Society: Series B", "2008", "70", "589--607",
        "10.1111/j.1467-9868.2007.00650.x",
    ),
    "friel2014": _article(
        "Friel, Nial and Hurn, Merrilee and Wyse, Jason",
        "Improving power posterior estimation of statistical evidence",
        "Statistics and Computing", "2014", "24", "709--723", "10.1007/s11222-013-9397-1",
    ),
    "oates2016": _article(
        "Oates, Chris J. and Papamarkou, Theodore and Girolami, Mark",
        "The controlled thermodynamic integral for {Bayesian} model evidence evaluation",
        "Journal of the American Statistical Association", "2016", "111", "634--645", "10.1080/01621459.2015.1021006",
    ),
    "neal2001": _article(
        "Neal, Radford M.", "Annealed importance sampling",
        "Statistics and Computing", "2001", "11", "125--139", "10.1023/A:1008923215028",
    ),
    "jarzynski1997": _article(
        "Jarzynski, Christopher", "Nonequilibrium equality for free energy differences",
        "Physical Review Letters", "1997", "78", "2690--2693", "10.1103/PhysRevLett.78.2690",
    ),
    "crooks2000": _article(
        "Crooks, Gavin E.", "Path-ensemble averages in systems driven far from equilibrium",
        "Physical Review E", "2000", "61", "2361--2366", "10.1103/PhysRevE.61.2361",
    ),
    "shirts2003": _article(
        "Shirts, Michael R. and Bair, Eric and Hooker, Giles and Pande, Vijay S.",
        "Equilibrium free energies from nonequilibrium measurements using maximum-likelihood methods",
        "Physical Review Letters", "2003", "91", "140601", "10.1103/PhysRevLett.91.140601",
    ),
    "xie2011": _article(
        "Xie, Wangang and Lewis, Paul O. and Fan, Yu and Kuo, Lynn and Chen, Ming-Hui",
        "Improving marginal likelihood estimation for {Bayesian} phylogenetic model selection",
        "Systematic Biology", "2011", "60", "150--160", "10.1093/sysbio/syq085",
    ),
}  # fmt: skip


def bibtex(keys: list[str]) -> str:
    """These sources, in this order."""
    return "\n\n".join(_entry(key, *SOURCES[key]) for key in keys) + "\n"


def _entry(key: str, kind: str, fields: dict[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
