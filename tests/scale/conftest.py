"""One Spark for all tests that need it."""

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in this process, with two threads and one retry."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    sql = pytest.importorskip("pyspark.sql")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    here = "127.0.0.1"
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.host": here,
        "spark.driver.bindAddress": here,
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.sql.warehouse.dir": "/nonexistent",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master("local[2,2]").appName("karat")
        for name, value in options.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
