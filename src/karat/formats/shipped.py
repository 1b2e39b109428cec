"""The formats karat ships, in the order in which a file is held against them."""

from karat.catalogue import Catalogue
from karat.formats.arrow.parquet import Parquet
from karat.formats.beir import Beir
from karat.formats.delimited import Delimited
from karat.formats.format import Format
from karat.formats.json_text import Json, JsonLines
from karat.formats.trec.adapters import TrecQrels, TrecRuns
from karat.formats.yaml_text import Yaml

__all__ = ["FORMATS", "SHIPPED"]

SHIPPED: tuple[Format, ...] = (
    Parquet(),
    JsonLines(),
    Json(),
    TrecRuns(),
    TrecQrels(),
    Delimited("tsv", (".tsv", ".tab"), "\t"),
    Delimited("csv", (".csv",), ",;|"),
    Yaml(),
    Beir(),
)

FORMATS: Catalogue[Format] = Catalogue(
    "format", {format.name: format for format in SHIPPED}, "karat.formats"
)
