"""Catalog files: text for people, and nothing that does not verify."""

from __future__ import annotations

import pytest

from dragoman.core.catalog import Catalog
from dragoman.core.storage.catalog_file import (
    CatalogError,
    CatalogImage,
    LogRow,
    SegmentRow,
    catalog_sequences,
    read_catalog,
    write_catalog,
)
from dragoman.core.storage.layout import Layout
from dragoman.simulation.disk import SimDisk


def written(sequence: int = 7) -> tuple[SimDisk, Layout, CatalogImage]:
    disk, layout = SimDisk(), Layout("data")
    disk.make_directory(layout.catalog)
    segments = [SegmentRow(0, 80, 2, 5, 7, True, 4), SegmentRow(2, 8, 3, 6)]
    rows = [LogRow(1, 0, 1, segments)]
    image = CatalogImage(sequence, 3, 2, True, Catalog().to_json(), rows)
    write_catalog(disk, layout, image)
    return disk, layout, image


def test_a_catalog_comes_back_as_it_was_written() -> None:
    disk, layout, image = written()
    assert read_catalog(disk, layout, 7) == image


def test_a_catalog_ends_with_a_line_that_says_its_checksum() -> None:
    disk, _, _ = written()
    assert disk.file("data/catalog/7.json").splitlines()[-1].startswith(b"crc32c:")


def test_no_changed_byte_of_a_catalog_passes() -> None:
    disk, layout, _ = written()
    data = disk.file("data/catalog/7.json")
    for at in range(len(data)):
        data[at] ^= 1
        with pytest.raises(CatalogError):
            read_catalog(disk, layout, 7)
        data[at] ^= 1


def test_a_catalog_under_another_name_is_refused() -> None:
    disk, layout, _ = written()
    disk.rename("data/catalog/7.json", "data/catalog/8.json")
    with pytest.raises(CatalogError):
        read_catalog(disk, layout, 8)


def test_catalogs_are_listed_by_number_the_newest_first() -> None:
    disk, layout, image = written(9)
    write_catalog(disk, layout, image._replace(sequence=10))
    disk.close(disk.open("data/catalog/11.json.tmp", create=True))
    assert catalog_sequences(disk, layout) == [10, 9]
