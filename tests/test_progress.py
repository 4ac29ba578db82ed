"""The progress bar: silent where nobody watches, and only after the delay."""

import io
import time
from types import SimpleNamespace

import pytest

from bayesknn._utils.progress import progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def watch(stream, monkeypatch):
    # Not sys.stderr itself: pytest puts its own there between set-up and test.
    monkeypatch.setattr("bayesknn._utils.progress.sys", SimpleNamespace(stderr=stream, modules={}))


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    watch(stream, monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def wait_for(stream, text, seconds=10.0):
    end = time.monotonic() + seconds
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.01)
    return text in stream.getvalue()


def test_quick_work_shows_nothing(terminal):
    with progress("Sampling", total=3) as advance:
        for _ in range(3):
            advance(1)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("total", [4, None])
def test_long_work_shows_a_bar_even_before_the_first_step(terminal, total):
    with progress("Sampling", total=total, delay=0.0) as advance:
        assert wait_for(terminal, "Sampling")
        advance(1)
        if total:
            assert wait_for(terminal, "25%")


def test_verbose_0_is_silent(terminal):
    with progress("Sampling", total=1, verbose=0, delay=0.0) as advance:
        time.sleep(0.05)
        advance(1)
    assert terminal.getvalue() == ""


def test_a_stream_that_is_no_terminal_stays_clean(monkeypatch):
    stream = io.StringIO()
    watch(stream, monkeypatch)
    with progress("Sampling", total=1, delay=0.0) as advance:
        time.sleep(0.05)
        advance(1)
    assert stream.getvalue() == ""


def test_long_work_writes_one_line_to_a_log(monkeypatch):
    stream = io.StringIO()
    watch(stream, monkeypatch)
    monkeypatch.setattr("bayesknn._utils.progress._LOG_DELAY", 0.0)
    with progress("Sampling", total=2, delay=0.0) as advance:
        assert wait_for(stream, "Sampling ...")
        advance(1)
        time.sleep(0.05)
    assert stream.getvalue() == "Sampling ...\n"


def test_a_notebook_has_a_bar(monkeypatch):
    shell = type("ZMQInteractiveShell", (), {})()
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    modules = SimpleNamespace(stderr=io.StringIO(), modules={"IPython": ipython})
    monkeypatch.setattr("bayesknn._utils.progress.sys", modules)
    opened = []
    monkeypatch.setattr("rich.progress.Progress.start", lambda bars: opened.append(bars))
    with progress("Sampling", total=1, delay=0.0):
        end = time.monotonic() + 10
        while not opened and time.monotonic() < end:
            time.sleep(0.01)
    assert len(opened) == 1


def test_an_error_inside_closes_the_bar_and_goes_on(terminal):
    with pytest.raises(KeyboardInterrupt), progress("Sampling", total=2, delay=0.0):
        assert wait_for(terminal, "Sampling")
        raise KeyboardInterrupt
    shown = terminal.getvalue()
    time.sleep(0.3)
    assert terminal.getvalue() == shown


def test_without_rich_there_is_no_bar_and_no_noise(terminal, monkeypatch, capfd):
    monkeypatch.setattr("bayesknn._utils.progress.is_installed", lambda name: False)
    with progress("Sampling", total=1, delay=0.0) as advance:
        time.sleep(0.1)
        advance(1)
    assert terminal.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def test_work_within_work_has_a_bar_below(terminal):
    with progress("Fitting", total=2, delay=0.0) as advance:
        assert wait_for(terminal, "Fitting")
        advance(1)
        with progress("Sampling", total=4, delay=0.0) as advance_inner:
            assert wait_for(terminal, "Sampling")
            advance_inner(3)
            assert wait_for(terminal, "75%")
        # The outer one goes on.
        terminal.truncate(0)
        assert wait_for(terminal, "Fitting")
        assert wait_for(terminal, "50%")
    shown = terminal.getvalue()
    time.sleep(0.3)
    assert terminal.getvalue() == shown
