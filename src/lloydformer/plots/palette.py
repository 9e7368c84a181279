"""The colours of all plots, distinguishable by colour-blind readers."""

# In the order in which clusters and curves use them. The first eight are those of Okabe and Ito
# (brown and grey in place of yellow and black, which vanish on white and black pages). Each later
# one is far from those before it, also for readers who do not see green: test_palette.py holds the
# distances.
CLUSTERS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # purple
    "#D55E00",  # vermilion
    "#56B4E9",  # sky
    "#A07D3A",  # brown
    "#6B6B6B",  # grey
    "#5AF0A5",  # mint
    "#3C46FF",  # ultramarine
    "#D21EFF",  # magenta
    "#960000",  # dark red
    "#F0B4FF",  # lilac
    "#690FA5",  # violet
    "#D20FA5",  # pink
    "#96B487",  # sage
    "#693C5A",  # plum
    "#D2D200",  # yellow
    "#4B7800",  # olive
    "#00D2C3",  # turquoise
)

# From weight 0 to the largest weight.
WEIGHT = ("#FFFFFF", "#9CC4E4", "#0072B2", "#00304D")

# From the most negative weight over 0 to the most positive one, and the same in words for captions.
SIGNED = ("#B24A00", "#F3B78C", "#FFFFFF", "#8FBFE0", "#0072B2")
SIGNED_WORDS = "blue is positive, brown negative, white 0"

# Lines and texts that do not belong to a cluster.
INK = "#444444"


# In the order in which curves use them, and clusters each time that the colours repeat.
MARKERS = "os^Dv<>P"


def cluster_colour(cluster: int) -> str:
    """Return the colour of a cluster; after the twentieth they repeat."""
    return CLUSTERS[cluster % len(CLUSTERS)]


def ink_on(colour: str) -> str:
    """Return white or near black, whichever has more contrast on the colour."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    # Relative luminance of WCAG, with the exponent 2.2 in place of the piecewise sRGB curve.
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    # WCAG's contrast is (L1 + 0.05) / (L2 + 0.05): white and black are equal at sqrt(1.05 * 0.05)
    # - 0.05 = 0.18.
    return "#FFFFFF" if luminance < 0.18 else "#111111"
