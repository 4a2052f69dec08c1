"""A real disk that is really full, under a real server: a tmpfs of a few MiB in a mount namespace
of its own, filled up by somebody else and emptied again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dragoman.codecs.registry import BUILT_IN, dialect
from dragoman.core.batch import Origin, RecordBatch
from dragoman.core.calls import (
    ROUND_ROBIN,
    CreateTopic,
    Fetch,
    Fetched,
    Ping,
    Pong,
    Produce,
    Produced,
    TopicCreated,
)
from dragoman.core.column import VarColumn
from dragoman.core.error import ErrorCode, Failure
from dragoman.core.storage.verify import verify
from support.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dragoman.core.calls import Reply, Request
