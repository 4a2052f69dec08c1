"""Keys of the configuration as the command line gives them."""

from __future__ import annotations

from dragoman.gateway.table import ConfigError


def read_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """Takes `key=value` apart.

    Raises:
        ConfigError: One is something else.
    """
    for pair in pairs:
        if "=" not in pair:
            raise ConfigError(f"--set {pair}: write key=value")
    return {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
