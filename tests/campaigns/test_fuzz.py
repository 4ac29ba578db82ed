"""Tests of stored cases of earlier faults and of new random cases; `make fuzz` draws thousands."""

import os
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaigns import fuzz
from campaigns.cases import POOLED, Case, fit_words
from campaigns.fuzz import keep
from campaigns.verdicts import describe, find_faults

# Number of cases of each kind, relative to the number of examples of the Hypothesis profile. The
# slowest kind has the smallest number.
PARTS = {"csv": 0.08, "model": 0.25, "arguments": 0.12, "estimator": 0.3}


@pytest.fixture(scope="module")
def drawing():
    return fuzz.strategies()


@pytest.fixture(scope="module")
def run_case():
    with closing(fuzz.CaseRunner()) as run_case:
        yield run_case


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("case", fuzz.corpus(), ids=lambda case: f"{case.kind}-{case.expect}")
def test_earlier_faults_stay_fixed(case, tmp_path):
    assert find_faults(case, tmp_path) == [], describe(case)


@pytest.mark.parametrize("kind", PARTS)
def test_cases_of_each_kind(drawing, run_case, kind):
    is_campaign = settings().max_examples >= 1000
    n_examples = max(round(PARTS[kind] * settings().max_examples), 1)

    # Every run has the same cases, so that no change is rejected because of an unrelated fault.
    # Only `make fuzz` draws new cases.
    @settings(
        max_examples=n_examples,
        derandomize=not is_campaign,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def look(data):
        case = data.draw(drawing[kind])
        # One case in sixty is run in a separate process too, whose output must be the same.
        outside = data.draw(st.integers(0, 59)) == 59
        faults = run_case(case, outside=outside)
        assert faults == [], keep(case)

    look()


def test_help_is_the_same_in_a_process_of_its_own(tmp_path):
    case = Case("arguments", ("predict", "--help"), {}, "accepted")
    assert find_faults(case, tmp_path, outside=True) == []


def test_faults_are_found(tmp_path, monkeypatch):
    """Each kind of fault is made on purpose and must be described."""
    table = (fuzz.CORPUS / "model.csv").read_bytes()
    sound = Case("csv", fit_words(*POOLED), {"t.csv": table}, "accepted")
    (fault,) = find_faults(sound._replace(expect="refused"), tmp_path)
    assert fault == "not rejected: exit code 0"
    (fault,) = find_faults(sound._replace(files={"t.csv": b"a,b\n1,2\n"}), tmp_path)
    assert "rejected although valid: Error: t.csv: there is no column 'y'" in fault
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.analysis.analyse", lambda *_, **__: 1 / 0)
        faults = find_faults(sound, tmp_path)
        assert any(fault.startswith("internal error") for fault in faults)
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.folder.write_results", lambda *_: None)
        assert any(fault.startswith("partial result") for fault in find_faults(sound, tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr("bayesknn.report.folder._remove", lambda entry: None)
        patched.setattr("shutil.rmtree", lambda *_, **__: None)
        faults = find_faults(sound._replace(expect="either", files={"t.csv": b"a\n"}), tmp_path)
        assert any(fault.startswith("left behind: .out.partial") for fault in faults)


def _serve_stops(pipe, folder):
    """Act as a process that crashes, hangs or gets little CPU time, depending on the case."""
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
def test_crashes_and_hangs_are_faults(monkeypatch):
    monkeypatch.setattr(fuzz, "_serve", _serve_stops)
    run_case = fuzz.CaseRunner()
    try:
        assert run_case(Case("csv", ("crash",)))[0].startswith("crash: the process ended with")
        assert run_case(Case("csv", ("hang",)), timeout=1.0) == ["hang: no answer for 1 s"]
        assert run_case(Case("csv", ("loop",)), timeout=1.0) == ["hang: no answer for 1 s"]
        assert run_case(Case("csv", ("starved",)), timeout=3.0) == []
    finally:
        run_case.close()
