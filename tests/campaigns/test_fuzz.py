"""What fuzzing has found before, and cases of each kind: few here, thousands in `make fuzz`."""

import os
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaigns import fuzz
from campaigns.cases import POOLED, Case, fit_words
from campaigns.fuzz import keep
from campaigns.verdicts import describe, judge

# Parts of the examples of a property: tables are the slowest. `make fuzz` draws thousands.
PARTS = {"csv": 0.08, "model": 0.25, "arguments": 0.12, "estimator": 0.3}


@pytest.fixture(scope="module")
def drawing():
    return fuzz.strategies()


@pytest.fixture(scope="module")
def judge_case():
    with closing(fuzz.Judge()) as judge_case:
        yield judge_case


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", fuzz.corpus(), ids=lambda case: f"{case.kind}-{case.expect}")
def test_what_was_found_once_stays_mended(case, tmp_path):
    assert judge(case, tmp_path) == [], describe(case)


@pytest.mark.parametrize("kind", PARTS)
def test_cases_of_each_kind(drawing, judge_case, kind):
    is_campaign = settings().max_examples >= 1000
    n_examples = max(round(PARTS[kind] * settings().max_examples), 1)

    # The same cases each time but in `make fuzz`: a discovery is no reason to refuse a change.
    @settings(
        max_examples=n_examples,
        derandomize=not is_campaign,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def look(data):
        case = data.draw(drawing[kind])
        # A real process runs one in sixty as well, and must say the same.
        outside = data.draw(st.integers(0, 59)) == 59
        faults = judge_case(case, outside=outside)
        assert faults == [], keep(case)

    look()


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
    assert "refused though sound: Error: t.csv: there is no column 'y'" in fault
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.analysis.analyse", lambda *_, **__: 1 / 0)
        faults = judge(sound, tmp_path)
        assert any(fault.startswith("internal error") for fault in faults)
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.folder.write_results", lambda *_: None)
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


@pytest.mark.slow
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
