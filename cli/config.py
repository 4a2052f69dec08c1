"""`dragoman config`: what a server started here would be told, and by whom."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from dragoman.cli.asking import DONE, REFUSED, complain, show, told
from dragoman.cli.setting import read_pairs
from dragoman.gateway.config import load_config
from dragoman.gateway.effective import effective
from dragoman.gateway.table import ConfigError

app = App(name="config", help="Show what is configured.")


@app.command(name="show")
def show_config(
    *,
    config: str | None = None,
    profile: str | None = None,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=(), show_default=False)] = (),
) -> int:
    """Every key that counts, with its value and who said so, a line of JSON each.

    Parameters
    ----------
    config
        Configuration file; dragoman.toml of the working directory where it is.
    profile
        A named set of keys below what the file says.
    set_
        One key of the configuration, as in listeners.v1.port=9192; may be repeated.
    """
    try:
        flags = {"profile": profile, **read_pairs(set_)}
        settings = load_config(Path(config) if config else None, os.environ, flags)
    except ConfigError as error:
        return complain(told(error), REFUSED)
    for one in effective(settings):
        show({"key": one.key, "value": one.value, "source": one.source})
    return DONE
