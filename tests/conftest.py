"""Shared fixtures: small tables, policies, and where the real microdata is."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings

from dalenius.demo_data import hospital
from tests import frugal
from tests.repeatable import install

frugal.keep_bytecode()
frugal.keep_files_in_memory()
_LEDGERS = tempfile.TemporaryDirectory()
os.environ["DALENIUS_LEDGER"] = str(Path(_LEDGERS.name) / "ledger")  # also for what modules copy on import

settings.register_profile("dalenius", deadline=None, derandomize=True)
settings.load_profile("dalenius")

PROJECT = Path(__file__).parent.parent
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A session of minutes ends before better machine code pays: 30 % less processor time."""
_FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Writing and compiling Java for a query pays for many rows only."""


def pytest_configure(config: pytest.Config) -> None:
    install(config)
    config.pluginmanager.register(frugal.FewerCollections())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts a cluster of its own comes first: at the end one worker would wait for the other.

    Then what needs Spark: workers are given neighbours, so one of them starts a session and not both.
    """
    items.sort(key=lambda item: ("a_cluster_that" not in item.name, not _needs_spark(item)))


def _needs_spark(item: pytest.Item) -> bool:
    call = getattr(item, "callspec", None)
    subject = None if call is None else call.params.get("subject")
    return "spark" in getattr(item, "fixturenames", ()) or getattr(subject, "engine", "") == "spark"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real microdata, which a clone does not have."""
    folder = PROJECT / os.environ.get("DALENIUS_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"no real microdata at {folder}; set DALENIUS_DATA to its folder")
    return folder


@pytest.fixture(autouse=True)
def joined(request: pytest.FixtureRequest) -> Iterator[None]:
    """A subject whose mechanism is not built in is known while its test runs."""
    call = getattr(request.node, "callspec", None)
    with ExitStack() as stack:
        for value in () if call is None else call.params.values():
            if hasattr(value, "joined"):
                stack.enter_context(value.joined())
        yield


def _new_ledger(factory: pytest.TempPathFactory) -> Path:
    return factory.getbasetemp() / "ledgers" / secrets.token_hex(8)


@pytest.fixture(scope="module", autouse=True)
def ledger_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that several tests share do not write to the user's ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALENIUS_LEDGER", str(_new_ledger(tmp_path_factory)))
        yield


@pytest.fixture(autouse=True)
def ledger_of_test(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nor do tests; each has a ledger of its own, made when it is needed."""
    path = _new_ledger(tmp_path_factory)
    monkeypatch.setenv("DALENIUS_LEDGER", str(path))
    return path


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for all tests of a process, on this machine alone; what it logs is kept."""
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java; `make services` installs it")
    folder = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = spark_settings(sql.SparkSession.builder.master("local[2,4]"), folder).getOrCreate()
        yield session
        session.stop()


def spark_settings(builder: Any, folder: Path) -> Any:
    """Small, quiet, and on the loopback interface only; the logs go to the folder."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    logging = folder / "log4j2.properties"
    logging.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.file.ref = file\n"
        "appender.file.type = File\nappender.file.name = file\n"
        f"appender.file.fileName = {folder / 'spark.log'}\n"
        "appender.file.layout.type = PatternLayout\nappender.file.layout.pattern = %m%n%ex\n"
    )
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.python.daemon.module": "tests.engines.spark.warm_daemon",
        "spark.sql.shuffle.partitions": "2",
        **_FEW_ROWS,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()} {_QUICK_JAVA}",
        "spark.executor.extraJavaOptions": _QUICK_JAVA,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


@pytest.fixture(scope="session")
def patients() -> pa.Table:
    """A small synthetic hospital."""
    return hospital(3_000)
