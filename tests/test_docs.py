"""The guide names every key that an operator may set, and documents link to what exists."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from dragoman.codecs import compression
from dragoman.codecs.cursus import codec
from dragoman.codecs.registry import BUILT_IN, dialect
from dragoman.core.options import EngineOptions
from dragoman.core.storage.options import StorageOptions
from dragoman.gateway.config import AdminConfig, Config, ListenerConfig
from support.conversation import Conversation
from support.cursus import framed

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "GUIDE.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
FLOORS = ("core", "codecs", "gateway", "simulation", "clients", "cli")
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for folder in (ROOT, ROOT / "docs", *(ROOT / "specs").glob("*"))
    for path in folder.glob("*.md")
)
DERIVED = {"dialect", "connections_chosen", "options", "ephemeral", "listeners", "layers"}
"""Fields that no key sets by itself."""


@pytest.mark.parametrize("kind", [StorageOptions, EngineOptions, ListenerConfig, AdminConfig])
def test_the_guide_names_every_key(kind: type) -> None:
    names = {field.name for field in fields(kind)} - DERIVED
    assert not [name for name in sorted(names) if f"`{name}`" not in GUIDE]


def test_the_guide_names_every_key_of_the_top() -> None:
    plain = {field.name for field in fields(Config)} - DERIVED - {"storage", "engine", "log"}
    assert not [name for name in sorted(plain) if f"`{name}`" not in GUIDE]


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_guide_names_every_option_of_a_dialect(name: str) -> None:
    options = dialect(name).options({})
    assert not [key for key in sorted(options) if f"| {name} | `{key}` |" not in GUIDE]


def test_the_guides_compression_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = [
        code for code in re.findall(r"```python\n(.*?)```", GUIDE, re.S) if "lzma" in code
    ]
    there = compression.Registry()
    for module in (compression, codec):
        monkeypatch.setattr(module, "registry", lambda: there)
    exec(example, {})
    packed = there.named("xz").compress(b"LIST")
    assert Conversation("cursus").send(framed(packed)) == framed("OK count=0 topics=")
    for hurt in (packed[:-1], packed + b"x", packed[:20] + b"xyz" + packed[23:]):
        assert b"the xz data is" in Conversation("cursus").send(framed(hurt))
    with pytest.raises(compression.BadCompression):
        there.named("xz").decompress(there.named("xz").compress(bytes(1001)), 1000)


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, made as forges make them."""
    plain = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", plain, re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        repeats = (f"{anchor}-{number}" for number in range(1, 100))
        found.add(anchor if anchor not in found else next(a for a in repeats if a not in found))
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", path.read_text())
    broken = []
    for link, anchor in links:
        there = path if not link else path.parent / link
        if "://" in link or (there.exists() and (not anchor or anchor in anchors(there))):
            continue
        broken.append(f"{link}#{anchor}")
    assert not broken


def test_every_source_that_the_architecture_names_is_there() -> None:
    named = set(re.findall(r"`([\w/]+\.py)", ARCHITECTURE))
    anywhere = {path.name for floor in FLOORS for path in (ROOT / floor).rglob("*.py")}
    there = {name for name in named if (ROOT / name).exists()}
    assert named
    assert not [name for name in sorted(named - there) if "/" in name or name not in anywhere]


def test_the_architecture_says_of_every_dependency_why() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[\w-]+", one) for one in project["dependencies"]]
    assert not [name[0] for name in names if name and f"| {name[0]} | " not in ARCHITECTURE]
    tests = [re.match(r"[\w-]+", one) for one in project["optional-dependencies"]["test"]]
    assert not [name[0] for name in tests if name and f"`{name[0]}`" not in ARCHITECTURE]
