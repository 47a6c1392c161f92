"""pygal for charts in a page: SVG without scripts, and without a mark of when it was made."""

from __future__ import annotations

import sys
from typing import Any
from xml.etree.ElementTree import Comment

import pygal
from pygal.style import Style

__all__ = ["Style", "drawn", "pygal"]

# For plugins of maps pygal adds a finder of modules, of a form about which Python 3.11 warns at each later import.
sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, pygal.PluginImportFixer)]


def drawn(chart: Any) -> str:
    """A chart as SVG; texts in it are escaped."""
    chart.add_xml_filter(_without_scripts)
    return str(chart.render(is_unicode=True))


def _without_scripts(root: Any) -> Any:
    """The drawing alone: pygal adds its settings as a script, for tooltips that a page without scripts has not."""
    for parent in list(root.iter()):
        for child in [one for one in parent if one.tag is Comment or str(one.tag).endswith("script")]:
            parent.remove(child)
    return root
