"""A small part of ``make fuzz``: what it has found before, and a few cases of each kind."""

import os
import time

import pytest

from campaigns import fuzz
from campaigns.cases import POOLED, Case, fit_words
from campaigns.verdicts import describe, judge

# Few enough for every run of the tests; the campaign draws others.
FEW = {"csv": 3, "model": 10, "arguments": 5, "estimator": 12}


@pytest.fixture(scope="module")
def drawing():
    return fuzz.strategies()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", fuzz.corpus(), ids=lambda case: f"{case.kind}-{case.expect}")
def test_what_was_found_once_stays_mended(case, tmp_path):
    assert judge(case, tmp_path) == [], describe(case)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("kind", FEW)
def test_a_few_cases_of_each_kind(drawing, kind, tmp_path):
    drawn = fuzz.draw_cases(drawing[kind], FEW[kind], seed=0)
    assert len(drawn) == FEW[kind]
    for case in drawn:
        assert judge(case, tmp_path) == [], describe(case)


def test_help_is_the_same_in_a_process_of_its_own(tmp_path):
    case = Case("arguments", ("predict", "--help"), {}, "accepted")
    assert judge(case, tmp_path, outside=True) == []


def test_the_judge_sees_faults(tmp_path, monkeypatch):
    """Each kind of fault, made on purpose, is a verdict."""
    table = (fuzz.CORPUS / "model.csv").read_bytes()
    sound = Case("csv", fit_words(*POOLED), {"t.csv": table}, "accepted")
    (fault,) = judge(sound._replace(expect="refused"), tmp_path)
    assert fault == "not refused: exit code 0"
    (fault,) = judge(sound._replace(files={"t.csv": b"a,b\n1,2\n"}), tmp_path)
    assert "refused though sound: Error: there is no column 'y'" in fault
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.analysis.analyse", lambda *_, **__: 1 / 0)
        faults = judge(sound, tmp_path)
        assert any(fault.startswith("internal error") for fault in faults)
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.results.write_results", lambda *_: None)
        assert any(fault.startswith("partial result") for fault in judge(sound, tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.folder._remove", lambda entry: None)
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        faults = judge(sound._replace(expect="either", files={"t.csv": b"a\n"}), tmp_path)
        assert any(fault.startswith("left behind: .out.partial") for fault in faults)


def _serve_stops(pipe, folder):
    """Stand in for a process that a case ends, that never ends, or that hardly ever runs."""
    word = pipe.recv()[0].words[0]
    if word == "crash":
        os.abort()
    for _ in range(20 if word == "starved" else 0):
        time.sleep(0.2)
        began = time.process_time()
        while time.process_time() < began + 0.03:
            pass
    if word == "starved":
        pipe.send([])
    while word == "loop":
        pass
    time.sleep(60)


def test_crashes_and_hangs_are_verdicts(monkeypatch):
    monkeypatch.setattr(fuzz, "_serve", _serve_stops)
    look = fuzz.Judge()
    try:
        assert look(Case("csv", ("crash",)))[0].startswith("crash: the process ended with")
        assert look(Case("csv", ("hang",)), timeout=1.0) == ["hang: nothing for 1 s"]
        assert look(Case("csv", ("loop",)), timeout=1.0) == ["hang: nothing for 1 s"]
        assert look(Case("csv", ("starved",)), timeout=3.0) == []
    finally:
        look.close()
