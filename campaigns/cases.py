"""Strategies of the fuzzer: damaged tables, model files and arguments, drawn by Hypothesis."""

from __future__ import annotations

import io
import json
import math
import operator
import pickle
import zipfile
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from bayesknn.model_file.schema import seal

# Options of a fast fit. More neighbours or draws would take longer and find no other faults.
QUICK = (
    "--model", "pseudo", "--max-neighbors", "8", "--draws", "200", "--no-compare",
)  # fmt: skip
POOLED = ("--no-compare",)


class Case(NamedTuple):
    """One call of the package.

    Attributes
    ----------
    kind : {"csv", "model", "arguments", "estimator", "call"}
    words : tuple of str
        Arguments of the command line; for an estimator the name of its class; for a call the name
        of the function and its wrong arguments.
    files : dict of str to bytes
        Files to write to the folder in which the command runs.
    expect : {"accepted", "refused", "either"}
        Allowed outcome of the call.
    parameters : dict
        Parameters of the estimator.
    """

    kind: str
    words: tuple[str, ...]
    files: dict[str, bytes] = {}
    expect: str = "either"
    parameters: dict[str, Any] = {}


def fit_words(*options: str) -> tuple[str, ...]:
    """Return the arguments of the command that fits ``t.csv``."""
    return ("fit", "t.csv", "--target", "y", "--out", "out", *options)


# Tables --------------------------------------------------------------------------------------

_NAMES = st.sampled_from(
    ["x", "weight, kg", "a;b", 'the "best"', "größe", "年龄", "🙂", "id", "$x_1$", "<b>", "e" * 300,
     "row", "class", "probability 1", "zone", "basis", "None", "1", "2.5", " lead", "a\tb", "%s",
     "{x}", "a=b", "-3", "__x", "nan", "actual", "line\nbreak"]
)  # fmt: skip
_CLASSES = st.sampled_from(
    [("0", "1"), ("a", "b", "c"), ("ja", "nein"), ("True", "False"), ("01", "02"), ("-1", "1"),
     ("$a", "<b>"), ("x,y", "p;q"), ("uncertain", "sure"), ("1", "two"), ("年", "月"),
     ("None", "Some"), ("1.0", "2.0"), ("=1+1", "@x"), ("a\nb", "c"), (" a", "a"),
     ("9007199254740993", "9007199254740992")]
)  # fmt: skip
_ODD_CELLS = (
    "", "NA", "None", "nan", "inf", "-inf", "1e400", "1e200", "-1e151", "1e-320", "0x10", "1,5",
    "1.5.2", "١٢", "½", "1 000", "2024-02-30", "2024-03-31", "31.12.2024", "2024-03-31T25:00",
    "9999-12-31", "1000-01-01", "TRUE", "'", '"', '""', "\t", "﻿", "🙂" * 50, "a" * 5000, "=1+1",
    "-", "--", "1e", "1_000", "99999999999999999999999", "-0", "00", "+7", "\\", "NULL", "#",
    "<script>", "{{x}}", "$\\frac{a", "\u202e", "1e308", "-1e308", "12:30", "1/2/24",
)  # fmt: skip


def _column(kind: str, n: int, rng: np.random.Generator, y: np.ndarray) -> list[str]:
    noisy = np.where(rng.random(n) < 0.75, y, rng.integers(0, y.max() + 1, n))
    if kind == "number":
        return [f"{v:.4g}" for v in rng.normal(size=n) + 2 * noisy]
    if kind == "integer":
        return [str(v) for v in rng.integers(0, 9, n) + 3 * noisy]
    if kind == "word":
        return [f"w{v}" for v in noisy]
    if kind == "boolean":
        return [("TRUE", "FALSE")[v % 2] for v in noisy]
    if kind == "date":
        days = rng.integers(0, 9, n)
        return [f"20{10 + v:02d}-0{1 + d}-1{d}" for v, d in zip(noisy, days, strict=True)]
    if kind == "tiny":
        return [f"{v:.3g}" for v in 1e-300 * (rng.normal(size=n) + noisy)]
    if kind == "large":
        return [f"{v:.3g}" for v in 1e140 * (rng.normal(size=n) + noisy)]
    if kind == "constant":
        return ["7"] * n
    if kind == "empty":
        return [""] * n
    if kind == "identifier":
        return [f"row {i}" for i in range(n)]
    if kind == "gaps":
        return ["" if rng.random() < 0.2 else f"{v:.3g}" for v in rng.normal(size=n)]
    if kind == "equal":
        return [str(v) for v in rng.integers(0, 2, n)]
    assert kind == "far"
    return ["1e12"] * (n // 2) + [str(v) for v in rng.integers(0, 3, n - n // 2)]


_PLAIN = ("number", "integer", "word", "boolean", "date")
_ODD = ("tiny", "large", "constant", "empty", "identifier", "gaps", "equal", "far")


def _quote(cell: str, separator: str, always: bool) -> str:
    if always or any(c in cell for c in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


@st.composite
def csv_files(draw: st.DrawFn) -> Case:
    """Draw a table, its file format, and damage to its cells and bytes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    plain = draw(st.booleans())
    n = draw(st.integers(20, 40) if plain else st.integers(0, 40))
    classes = draw(_CLASSES)
    y = np.arange(n) % len(classes)
    if not plain and n and draw(st.booleans()):
        y = np.where(rng.random(n) < 0.1, y, 0)  # Classes other than the first are rare.
    if n == 0:
        y = np.zeros(0, dtype=int)
    kinds = draw(st.lists(st.sampled_from(_PLAIN if plain else _PLAIN + _ODD), max_size=5))
    if plain:
        kinds = ["number", *kinds]
    names = draw(st.lists(_NAMES, min_size=len(kinds), max_size=len(kinds), unique=True))
    if plain:
        names[0] = "x0"  # A name such as "id" would make an only column an identifier of rows.
    columns = [_column(kind, n, rng, y if n else np.zeros(1, int)) for kind in kinds]
    index = draw(st.integers(0, len(kinds)))
    names.insert(index, "y")
    columns.insert(index, [classes[g] for g in y])
    rows = [names, *(list(row) for row in zip(*columns, strict=True))]
    damage = 0 if plain else draw(st.integers(0, 3))
    expect = "either"
    for _ in range(damage):
        _damage_cells(draw, rows)
    separator = draw(st.sampled_from(",;\t|"))
    always = draw(st.booleans())
    end = draw(st.sampled_from(["\n", "\r\n", "\r"] if plain else ["\n", "\r\n", "\r", "\n\n"]))
    text = end.join(separator.join(_quote(c, separator, always) for c in row) for row in rows)
    text += draw(st.sampled_from(["", end]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    content = text.encode(encoding, "surrogatepass")
    for _ in range(damage and draw(st.integers(0, 2))):
        content = _damage_bytes(draw, content)
    options = draw(st.sampled_from([QUICK, POOLED]))
    if encoding == "utf-16":
        options = (*options, "--encoding", "utf-16")
    if not plain and draw(st.booleans()):
        options = (*options, "--impute")
    # If rows end with a carriage return alone, a line break inside a cell is ambiguous and the
    # table may be rejected. All other undamaged tables must be accepted.
    if plain and not (end == "\r" and any("\n" in c for row in rows for c in row)):
        expect = "accepted"
    return Case("csv", fit_words(*options), {"t.csv": content}, expect)


def _damage_cells(draw: st.DrawFn, rows: list[list[str]]) -> None:
    i = draw(st.integers(0, len(rows) - 1))
    row = rows[i]
    what = draw(st.sampled_from(["cell", "cell", "cell", "short", "long", "twice", "column"]))
    if what == "cell" and row:
        row[draw(st.integers(0, len(row) - 1))] = draw(st.sampled_from(_ODD_CELLS))
    elif what == "short" and row:
        row.pop()
    elif what == "long":
        row.append(draw(st.sampled_from(_ODD_CELLS)))
    elif what == "twice":
        rows.append(list(row))
    elif what == "column":
        j = draw(st.integers(0, max(len(rows[0]) - 1, 0)))
        cell = draw(st.sampled_from(_ODD_CELLS))
        for row in rows[1:]:
            if j < len(row):
                row[j] = cell


def _damage_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    if not content:
        return content
    at = draw(st.integers(0, len(content) - 1))
    what = draw(st.sampled_from(["flip", "cut", "insert", "delete", "repeat"]))
    if what == "flip":
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if what == "cut":
        return content[:at]
    if what == "insert":
        odd = [b'"', b"\0", b"\xff", b"\n", b",", b";", b"\r", b"\xef\xbb\xbf", b"\xe2\x80\xa8"]
        return content[:at] + draw(st.sampled_from(odd)) + content[at:]
    if what == "delete":
        return content[:at] + content[at + draw(st.integers(1, 9)) :]
    return content + content[at : at + 200]


# Model files ---------------------------------------------------------------------------------


@st.composite
def model_files(draw: st.DrawFn, models: dict[str, bytes]) -> Case:
    """Draw a damaged or valid model file, or a file that is no model."""
    name = draw(st.sampled_from(sorted(models)))
    content = models[name]
    what = draw(st.sampled_from(["bytes", "schema", "schema", "schema", "array", "array",
                                 "member", "foreign", "sound"]))  # fmt: skip
    if what == "bytes":
        for _ in range(draw(st.integers(1, 4))):
            content = _damage_bytes(draw, content)
    elif what == "foreign":
        content = draw(st.sampled_from(_foreign_files()))
    elif what != "sound":
        content = _damage_archive(draw, content, what)
    expect = "accepted" if what == "sound" else "refused" if what == "foreign" else "either"
    return Case("model", ("predict", "m.skops", f"{name}.csv"), {"m.skops": content}, expect)


def _foreign_files() -> list[bytes]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from skops.io import dumps

    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    things = [
        LogisticRegression().fit(X, y), make_pipeline(KNeighborsClassifier(1)).fit(X, y),
        X, {"a": [1]}, "text", None, print, 3.5, [X], np.random.default_rng(0),
    ]  # fmt: skip
    files = [b"", b"PK", b"PK\x03\x04" + bytes(40), b"no model", b"\x80\x04.", b"PAR1" + bytes(9)]
    files += map(dumps, things)
    files.append(pickle.dumps(X))
    npz = io.BytesIO()
    np.savez(npz, X=X)
    files.append(npz.getvalue())
    schemas = (b"", b"{}", b"[]", b"null", b"{", b"[" * 100_000, b'{"__class__": "x"}')
    return files + [_zip({"schema.json": schema}) for schema in schemas]


def _zip(members: dict[str, bytes], *, is_sealed: bool = False) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        if is_sealed:
            archive.comment = seal(archive)
    return file.getvalue()


def _damage_archive(draw: st.DrawFn, content: bytes, what: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    arrays = sorted(name for name in members if name != "schema.json")
    if what == "schema":
        schema = json.loads(members["schema.json"])
        for _ in range(draw(st.integers(1, 3))):
            _damage_json(draw, schema)
        members["schema.json"] = json.dumps(schema).encode()
    elif what == "array" and arrays:
        name = draw(st.sampled_from(arrays))
        members[name] = _damage_array(draw, members[name])
    elif what == "member":
        name = draw(st.sampled_from(sorted(members)))
        how = draw(st.sampled_from(["drop", "empty", "swap", "bytes", "more"]))
        if how == "drop":
            del members[name]
        elif how == "empty":
            members[name] = b""
        elif how == "swap":
            members[name] = members[draw(st.sampled_from(sorted(members)))]
        elif how == "bytes":
            members[name] = _damage_bytes(draw, members[name])
        else:
            members["../evil.npy"] = members[name]
    # Nine of ten damaged files get a valid checksum, so that the damage reaches the code behind it.
    return _zip(members, is_sealed=draw(st.integers(0, 9)) > 0)


_ODD_VALUES = (None, True, -1, 0, 1, 2**31, 2**70, -0.5, 1e308, float("nan"), "", "x", [], {}, [1],
               "bayesknn.classifier", "builtins", "print", "NeighborGraph", "os.system", "float64",
               {"a": 1})  # fmt: skip


def _damage_json(draw: st.DrawFn, node: Any) -> None:
    """Replace, remove or change a value at a random position of a JSON tree."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[draw(st.integers(0, len(keys) - 1))]
        child = node[key]
        if isinstance(child, dict | list) and child and draw(st.integers(0, 5)):
            node = child
            continue
        how = draw(st.sampled_from(["replace", "replace", "drop", "number"]))
        if how == "drop":
            del node[key]
        elif how == "number" and isinstance(child, int | float):
            node[key] = child + draw(st.sampled_from([-1, 1, 1000, 0.5, -(10**9)]))
        elif isinstance(child, str) and child[:1].isdigit() and draw(st.booleans()):
            node[key] = draw(st.sampled_from(["0", "-5", "1000000000", "nan", "1e9", "true"]))
        else:
            node[key] = draw(st.sampled_from(_ODD_VALUES))
        return


def _damage_array(draw: st.DrawFn, content: bytes) -> bytes:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError:
        return b""
    how = draw(st.sampled_from(["value", "value", "value", "fill", "dtype", "shape", "short"]))
    if how in ("value", "fill") and array.size and array.dtype.kind in "iufb":
        odd = draw(st.sampled_from([-1, 0, 1, 10**6, -(2**31), 2**31 - 1, np.nan, np.inf]))
        if array.dtype.kind != "f":
            info = np.iinfo("u1" if array.dtype.kind == "b" else array.dtype)
            # Python integers are compared, because the largest NumPy integer is not exact as float.
            integer = int(np.nan_to_num(odd, posinf=info.max // 2))
            odd = min(max(integer, int(info.min)), int(info.max))
        array = array.copy()
        if how == "fill":
            array[...] = odd
        else:
            array.flat[draw(st.integers(0, array.size - 1))] = odd
    elif how == "dtype":
        kind = draw(st.sampled_from(["f4", "i1", "U3", "c16", "?", "u8"]))
        with np.errstate(all="ignore"):
            array = np.asarray(array).astype(kind) if array.dtype.kind in "iufb" else array[:0]
    elif how == "shape":
        array = array.reshape(-1)[None, :]
    else:
        array = array[: len(array) // 2] if array.ndim else array
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# Arguments -----------------------------------------------------------------------------------

_FIT_OPTIONS: dict[str, tuple[Any, ...]] = {
    "--target": ("y", "Y", "kind", "", "x", "😀"),
    "--out": ("out", "t.csv", "deep/er/out", ".", "..", "/", "/proc/x", "", "o" * 300, "model",
              "t.csv/x", "a\nb", "-o"),
    "--test": ("test.csv", "none.csv", ".", "t.csv", "bad.csv", "/dev/null", "model"),
    "--force": (None,), "--quiet": (None,), "--json": (None,), "--impute": (None,),
    "--scale": (None,), "--no-scale": (None,), "--compare": (None,), "--debug": (None,),
    "--drop": ("x", "z", "x,z", "", ",", "y", "w"),
    "--keep": ("x", "w", "y"),
    "--categorical": ("x", "town", "x,z", "y", "nothing"),
    "--numeric": ("x", "town", "x,z", "y", "nothing"),
    "--date-order": ("year", "month", "day", "week"),
    "--header-row": ("1", "2", "1000000", "0", "-1", "x"),
    "--weights": ("x", "z", "town", "y", "nothing"),
    "--ignore": ("leak", "fit", "nothing", ""),
    "--encoding": ("utf-8", "latin-1", "utf-16", "none", "rot13", "punycode", "zip", "idna",
                   "undefined", "ascii", "\0", "base64", "utf-7", "mbcs"),
    "--sep": (",", ";", "tab", "", "ab", "x", ".", " ", "\\t", "\0", "é"),
    "--metric": ("euclidean", "gower", "mahalanobis", "manhattan", "cosine", "precomputed", "",
                 "minkowski", "seuclidean", "haversine", "nan_euclidean", "jaccard", "wminkowski"),
    "--model": ("pooled", "pseudo", "holmes-adams", "coherent", "what"),
    "--inference": ("auto", "grid", "metropolis", "nuts"),
    "--label-sampler": ("gibbs", "perfect", "none"),
    "--max-neighbors": ("1", "2", "8", "29", "30", "1000000", "0", "-1", "2.5", "x"),
    "--beta-max": ("auto", "1", "0", "-1", "nan", "inf", "1e-300", "1e300", "20", "x"),
    "--class-prior": ("0=.5", "1=.5", "0=1", "=", "a=b", "0=nan", "1=-1", "0=0", "0=inf", "x=.1"),
    "--level": ("0.5", "0.999999", "0", "1", "nan", "inf", "-1", "1e-12", "x"),
    "--chains": ("1", "2", "0", "-3", "x"),
    "--draws": ("1", "4", "100", "0", "-1", "1.5"),
    "--warmup": ("0", "10", "-1", "x"),
    "--seed": ("0", "4294967295", "4294967296", "-1", "x"),
    "--jobs": ("1", "2", "-1", "0", "-2", "x"),
    "--nonsense": ("x",), "--help": (None,), "extra.csv": (None,),
}  # fmt: skip
_PREDICT_OPTIONS: dict[str, tuple[Any, ...]] = {
    **{name: _FIT_OPTIONS[name] for name in ("--force", "--quiet", "--json", "--encoding", "--sep",
                                            "--level", "--jobs", "--debug", "--help")},
    "--out": (*_FIT_OPTIONS["--out"], "p.csv", "P.CSV", "deep/p.csv"),
    "--threshold": ("0=.2", "1=.9", "0=nan", "x", "=", "no=2"),
    "--loss": ("loss.csv", "t.csv", "none.csv", "bad.csv", "model"),
    "--target": ("y",),
}  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn, files: dict[str, bytes]) -> Case:
    """Draw a command line with options that may be invalid or contradict each other."""
    command = draw(st.sampled_from(["fit", "fit", "fit", "predict"]))
    if command == "fit":
        options, words = _FIT_OPTIONS, ["fit", "t.csv"]
        given = draw(st.lists(st.sampled_from(sorted(options)), max_size=5, unique=True))
        for name, value in (("--target", "y"), ("--out", "out")):
            if name not in given and draw(st.integers(0, 19)):
                words += [name, value]
        words += ["--no-compare"] * ("--compare" not in given)
        if "--draws" not in given and {"--inference", "--metric"} & set(given):
            words += ["--draws", "100"]
        if "--model" not in given and draw(st.booleans()):
            words += ["--model", "pseudo"]
    else:
        options = _PREDICT_OPTIONS
        words = ["predict", draw(st.sampled_from(["model", "model/model.skops", "pool", "t.csv"])),
                 draw(st.sampled_from(["t.csv", "test.csv", "bad.csv", "none.csv"]))]  # fmt: skip
        given = draw(st.lists(st.sampled_from(sorted(options)), max_size=4, unique=True))
    for name in given:
        value = draw(st.sampled_from(options[name]))
        words += [name, *(() if value is None else (value,) if isinstance(value, str) else value)]
    return Case("arguments", tuple(words), files)


_COUNTS = (1, 2, 5, 0, -1, 2.0, "3", None, True, np.int64(3), 10**9, float("nan"), [1])
_SHARED: dict[str, tuple[Any, ...]] = {
    "metric": ("euclidean", "manhattan", "gower", "mahalanobis", "cosine", "precomputed", "x", 3,
               None, "minkowski", "haversine", "canberra", math.dist, ["euclidean"]),
    "metric_params": (None, {}, {"p": 3}, {"p": 0}, {"w": [1, 2]}, {"V": np.eye(3)}, "p", {"x": 1},
                      5),
    "max_neighbors": _COUNTS,
    "n_jobs": (None, 1, 2, -1, 0, "x", 1.5, True),
    "search": ("auto", "brute", "kd_tree", "tree", "ball_tree", "faiss-hnsw", "x", None, 1),
    "search_params": (None, {}, {"leaf_size": 3}, {"x": 1}, "y", {"n_lists": 0}, {"leaf_size": -1}),
    "random_state": (None, 0, 7, -1, "x", 1.5, np.random.default_rng(0), np.random.RandomState(0),
                     np.random.SeedSequence(3), 2**40, [1, 2]),
    "verbose": (0, 1, True, -1, "x", None),
}  # fmt: skip
_ESTIMATORS: dict[str, dict[str, tuple[Any, ...]]] = {
    "BayesianKNeighborsClassifier": {
        **_SHARED,
        "likelihood": ("pseudo", "holmes-adams", "coherent", "auto", None, 1, ["pseudo"]),
        "inference": ("auto", "grid", "metropolis", "exchange", "auxiliary", "x", None),
        "label_sampler": ("swendsen-wang", "gibbs", "perfect", "x", None),
        "beta_max": ("auto", 1.0, 4, 0, -1.0, float("nan"), float("inf"), "x", None, [1], 1e-300),
        "prior": (None, "x", [1, 2], np.ones((2, 2)), np.zeros(3), operator.add, 3.0, [[np.nan]]),
        "class_prior": (None, [0.5, 0.5], [1, 0], [0.5], {"a": 1}, {0: 0.3, 1: 0.7}, "x",
                        [np.nan, 1], [-1, 2], {0: 0.5}, [0, 0], 0.5),
        "class_prior_as": ("offset", "weights", "x", None),
        "calibrate": (True, False, "yes", None, 1),
        "n_chains": (1, 2, 0, "x", 1.5),
        "n_draws": (1, 20, 0, None, -3),
        "n_warmup": (0, 10, -1, None),
    },
    "PooledNeighborsClassifier": {
        **{name: _SHARED[name] for name in ("max_neighbors", "n_jobs", "search", "search_params",
                                            "random_state", "verbose")},
        "members": (("evidence",), ("evidence", "evidence"), (), None, "evidence",
                    ["discriminant", "x"], 3, ("robust", "relevance")),
        "n_folds": (2, 5, 1, 0, "x", 1000, None),
    },
    "ClassicalKNeighborsClassifier": {
        **{name: _SHARED[name] for name in ("metric", "metric_params", "max_neighbors", "n_jobs")},
        "n_neighbors": ("loo", 1, 3, 0, -1, 1000, "x", None, 1.5),
    },
    "ColumnSelector": {
        **{name: _SHARED[name] for name in ("n_jobs", "random_state", "verbose")},
        "by": ("evidence", "pseudo-evidence", "loo", "x", None),
        "max_columns": (1, 2, 0, "x", None),
    },
}  # fmt: skip


@st.composite
def estimators(draw: st.DrawFn) -> Case:
    """Draw an estimator class and values of up to four of its parameters."""
    name = draw(st.sampled_from(sorted(_ESTIMATORS) + ["BayesianKNeighborsClassifier"] * 3))
    pools = _ESTIMATORS[name]
    given = draw(st.lists(st.sampled_from(sorted(pools)), min_size=1, max_size=4, unique=True))
    parameters = {each: draw(st.sampled_from(pools[each])) for each in given}
    if name == "BayesianKNeighborsClassifier":
        parameters = {"likelihood": "pseudo", "n_draws": 20, "n_warmup": 10, **parameters}
    return Case("estimator", (name,), {}, "either", parameters)
