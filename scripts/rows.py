"""Print the rows of a table of tests/validate that contain all words, as CSV.

python scripts/rows.py time/h200.csv reduce
python scripts/rows.py counters/h200_compared.parquet unequal histogram
"""

import sys
from pathlib import Path

import polars as pl

VALIDATE = Path(__file__).parents[1] / "tests" / "validate"


def rows(file: Path, words: list[str]) -> pl.DataFrame:
    """The rows of a table that contain each word in some cell."""
    is_parquet = file.suffix == ".parquet"
    table = pl.read_parquet(file) if is_parquet else pl.read_csv(file, infer_schema=False)
    lists = pl.selectors.by_dtype(pl.List)
    table = table.with_columns(lists.cast(pl.List(pl.String)).list.join("x"))
    text = pl.concat_str(pl.all().cast(pl.String).fill_null(""), separator=" ")
    for word in words:
        table = table.filter(text.str.contains(word, literal=True))
    return table


if __name__ == "__main__":
    sys.stdout.write(rows(VALIDATE / sys.argv[1], sys.argv[2:]).write_csv())
