"""The formats karat ships, in the order in which a file is held against them."""

from karat.catalogue import Catalogue
from karat.reading.format import Format
from karat.reading.syntax.beir import Beir
from karat.reading.syntax.delimited import Delimited
from karat.reading.syntax.json_text import Json, JsonLines
from karat.reading.syntax.parquet import Parquet
from karat.reading.syntax.trec import TrecQrels, TrecRuns
from karat.reading.syntax.yaml_text import Yaml

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
