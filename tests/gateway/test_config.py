from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dragoman.core.storage.options import Durability
from dragoman.gateway.config import Config, LogFormat, LogLevel, load_config
from dragoman.gateway.door import parse_address
from dragoman.gateway.table import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def load(
    tmp_path: Path, text: str = "", environment: dict[str, str] | None = None, **flags: Any
) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text(text)
    return load_config(file, environment or {}, {k.replace("__", "."): v for k, v in flags.items()})


def port_of(config: Config, name: str) -> int:
    return next(one.port for one in config.listeners if one.dialect == name)


def test_without_a_word_every_dialect_listens_on_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_config(None, {}, {})
    assert {one.dialect: one.port for one in config.listeners} == {
        "cursus": 9000,
        "v1": 9092,
        "iggy": 8090,
        "rustlog": 9093,
    }
    assert {one.host for one in config.listeners} == {"127.0.0.1"}
    assert config.storage.durability is Durability.FSYNC
    assert {one.dialect: one.connections_max for one in config.listeners}["cursus"] == 1_000
    assert {one.dialect: one.idle_timeout_s for one in config.listeners}["cursus"] == 300.0


def test_a_dialects_own_options_may_come_as_text_from_variables_and_flags(tmp_path: Path) -> None:
    environment = {
        "DRAGOMAN_LISTENERS__CURSUS__LEGACY_REPLIES": "true",
        "DRAGOMAN_LISTENERS__CURSUS__CONSUME_STYLE": "batch",
    }
    config = load(tmp_path, "", environment, listeners__cursus__auto_create="2")
    options = next(one.options for one in config.listeners if one.dialect == "cursus")
    given = {"legacy_replies": True, "consume_style": "batch", "auto_create": 2}
    assert options.items() >= given.items()
    with pytest.raises(ConfigError, match=r"listeners\.v1\.partitions: "):
        load(tmp_path, "", {"DRAGOMAN_LISTENERS__V1__PARTITIONS": "many"})


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    text = "[listeners.v1]\nport = 1000\n[listeners.iggy]\nport = 1001\n[log]\nlevel = 'debug'\n"
    environment = {
        "DRAGOMAN_LISTENERS__V1__PORT": "2000",
        "DRAGOMAN_LISTENERS__IGGY__PORT": "2001",
        "UNRELATED": "x",
    }
    config = load(tmp_path, text, environment, listeners__iggy__port=3001)
    assert port_of(config, "v1") == 2000
    assert port_of(config, "iggy") == 3001
    assert config.log.level is LogLevel.DEBUG


def test_sizes_and_times_are_read_in_human_units(tmp_path: Path) -> None:
    text = """
    [listeners.cursus]
    idle_timeout = "90s"
    frame_bytes_max = "8MiB"
    [storage]
    segment_bytes = "16MiB"
    checkpoint_interval = "2m"
    """
    config = load(tmp_path, text)
    listener = config.listeners[0]
    assert (listener.idle_timeout_s, listener.frame_bytes_max) == (90.0, 8 << 20)
    assert config.storage.segment_bytes == 16 << 20
    assert config.storage.checkpoint_interval_s == 120.0


def test_an_interval_names_its_time(tmp_path: Path) -> None:
    config = load(tmp_path, "[storage]\ndurability = 'interval:250'\n")
    assert config.storage.durability is Durability.INTERVAL
    assert config.storage.flush_ms == 250


def test_ephemeral_listeners_take_free_ports_of_loopback(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("[listeners.v1]\nhost = '0.0.0.0'\nport = 9192\n")
    config = load_config(file, {}, {}, ephemeral=True)
    assert {(one.host, one.port) for one in config.listeners} == {("127.0.0.1", 0)}


def test_a_disabled_listener_is_left_out(tmp_path: Path) -> None:
    config = load(tmp_path, "[listeners.iggy]\nenabled = false\n")
    assert "iggy" not in [one.dialect for one in config.listeners]


def test_the_log_has_a_format(tmp_path: Path) -> None:
    assert load(tmp_path, "[log]\nformat = 'json'\n").log.format is LogFormat.JSON


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("datta = 'x'", 'unknown key "datta" in the configuration; did you mean "data"?'),
        ("[listeners.cursos]\n", 'unknown key "cursos" in listeners; did you mean "cursus"?'),
        (
            "[storage]\nsegment_byte = 1",
            'unknown key "segment_byte" in storage; did you mean "segment_bytes"?',
        ),
        ("[storage]\nsegment_bytes = '64 furlongs'", "storage.segment_bytes: '64 furlongs' is"),
        ("[storage]\ndurability = 'maybe'", "'maybe' is none of fsync, interval, os"),
        ("[storage]\njournal_files_max = 1", "journal_files_max must be at least 4"),
        ("[log]\nformat = 'xml'", "'xml' is none of console, json, logfmt"),
        ("[listeners.v1]\nport = 70000", "listeners.v1.port: 70000 is not a port"),
        ("[listeners.v1]\nport = 'many'", "listeners.v1.port: 'many' is not a number"),
        ("[listeners.v1]\nenabled = 'perhaps'", "is neither true nor false"),
        ("[listeners.v1]\ntls_cert = 'a.pem'", "tls_cert and tls_key belong together"),
        ("[listeners.v1]\nconnections_max = 0", "at least one connection"),
        ("[listeners.v1]\nadvertised = 'nowhere'", "'nowhere' is not host:port"),
        ("[listeners.v1]\nnonsense = 1", "listeners.v1: "),
        ("[listeners.v1]\nprot = 1", 'did you mean "port"?'),
        ("listeners = 3", '"listeners" is a section, not a value'),
        ("data = ", "is not TOML"),
        ("insecure = 3", "3 is neither true nor false"),
        (
            "[listeners]\n"
            + "".join(f"{n}.enabled=false\n" for n in ("cursus", "v1", "iggy"))
            + "rustlog.enabled=false",
            "every listener is disabled",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_named_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no configuration file"):
        load_config(tmp_path / "absent.toml", {}, {})


def test_a_public_address_needs_a_word(tmp_path: Path) -> None:
    text = "[listeners.v1]\nhost = '0.0.0.0'\n"
    with pytest.raises(ConfigError, match="pass --insecure to accept that"):
        load(tmp_path, text)
    assert load(tmp_path, text, insecure=True).insecure


@pytest.mark.parametrize(
    "text",
    [
        "data = 5",
        "data = ''",
        'data = "a\\u0000b"',
        "drain_timeout_s = nan",
        "drain_timeout_s = inf",
        "[storage]\nsegment_bytes = inf",
        "[storage]\nsegment_bytes = '99999999999999TiB'",
        f"[storage]\nsegment_bytes = '{'9' * 400}'",
        "[engine]\npartitions_max = 1e30",
    ],
)
def test_what_no_path_and_no_counter_can_be_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="is not a"):
        load(tmp_path, text)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.5", "::1"])
def test_loopback_has_many_names(tmp_path: Path, host: str) -> None:
    assert load(tmp_path, f"[listeners.v1]\nhost = '{host}'\n").listeners[1].host == host


def test_an_address_is_a_host_and_a_port() -> None:
    assert parse_address("log.example:9000", "x") == ("log.example", 9000)
    assert parse_address("[::1]:9000", "x") == ("::1", 9000)


def test_what_all_connections_share_is_read_in_human_units(tmp_path: Path) -> None:
    text = "[server]\nin_flight_bytes_max = '64MiB'\nslow_reader_timeout = '5s'\n"
    shared = load(tmp_path, text, server__frame_stall_timeout="250ms").server
    assert shared.in_flight_bytes_max == 64 << 20
    assert (shared.slow_reader_timeout_s, shared.frame_stall_timeout_s) == (5.0, 0.25)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("in_flight_bytes_max", "1000"),
        ("slow_reader_timeout", "0"),
        ("frame_stall_timeout", "0"),
        ("in_flight", "1GiB"),
    ],
)
def test_budgets_that_cannot_work_are_refused(tmp_path: Path, key: str, value: str) -> None:
    with pytest.raises(ConfigError, match="server"):
        load(tmp_path, "", **{f"server__{key}": value})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("in_sync_min = 0", "engine: in_sync_min must be above 0"),
        ("in_sync_min = 4", "in_sync_min must be at most replication_factor, 3, not 4"),
        ("replication_factor = 0", "replication_factor must be above 0"),
        ("record_bytes_max = 0", "record_bytes_max must be above 0"),
        ("record_bytes_max = '100MiB'", "record_bytes_max must be at most 62914560"),
        ("group_members_max = 0", "group_members_max must be above 0"),
        ("retention_check = 0", "retention_check_us must be above 0"),
    ],
)
def test_an_engine_that_could_serve_nobody_is_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, f"[engine]\n{text}\n")
    assert sentence in str(refused.value)


def test_zero_turns_off_what_an_engine_can_do_without(tmp_path: Path) -> None:
    names = ("dedupe_entries_max", "replica_lag_max", "retention_ms", "retention_bytes")
    text = "".join(f"{name} = 0\n" for name in (*names, "tombstone_ms", "long_poll_max_us"))
    engine = load(tmp_path, f"[engine]\n{text}").engine
    assert [getattr(engine, name) for name in names] == [0, 0, 0, 0]


def test_the_admin_port_has_a_section_of_its_own(tmp_path: Path) -> None:
    config = load(tmp_path, "[admin]\nport = 9999\nhandshake_timeout = '2s'\n")
    assert (config.admin.port, config.admin.handshake_timeout_s) == (9999, 2.0)
    assert load(tmp_path, "[admin]\nenabled = false\nhost = '0.0.0.0'\n").admin.enabled is False
    with pytest.raises(ConfigError, match=r"^admin\.host: 0\.0\.0\.0 can be reached"):
        load(tmp_path, "[admin]\nhost = '0.0.0.0'\n")


def test_an_ephemeral_admin_port_is_a_free_one_of_loopback() -> None:
    config = load_config(None, {}, {"admin.host": "0.0.0.0"}, ephemeral=True)
    assert (config.admin.host, config.admin.port) == ("127.0.0.1", 0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("tls_client_ca = 'ca.pem'", "without tls_cert and tls_key nothing is verified"),
        ("handshake_timeout_s = 0", "handshake_timeout_s must be above 0"),
        ("tls_cert = 'a'", "belong together"),
    ],
)
@pytest.mark.parametrize("section", ["listeners.v1", "admin"])
def test_tls_that_cannot_be_meant_is_refused(
    tmp_path: Path, section: str, text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{section}.*{sentence}"):
        load(tmp_path, f"[{section}]\n{text}\n")


def test_a_public_address_whose_clients_show_certificates_is_authenticated(tmp_path: Path) -> None:
    text = "[admin]\nhost='0.0.0.0'\ntls_cert='a'\ntls_key='b'\ntls_client_ca='c'\n"
    assert load(tmp_path, text).admin.host == "0.0.0.0"


@pytest.mark.parametrize("keys", [("listeners.v1.port", "admin.port"), ("admin.port",)])
def test_two_doors_with_one_address_are_refused(keys: tuple[str, ...]) -> None:
    flags = dict.fromkeys(keys, 9000)
    with pytest.raises(ConfigError, match=r"\.port: 9000 is that of listeners\.cursus already$"):
        load_config(None, {}, flags)
    load_config(None, {}, flags, ephemeral=True)


def test_one_port_of_two_addresses_is_taken_twice() -> None:
    load_config(None, {}, {"admin.port": 9000, "admin.host": "127.0.0.2"})
