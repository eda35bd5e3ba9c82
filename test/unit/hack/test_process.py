import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hack.cluster.errors import StartError
from hack.cluster.process import Identity, PidFile, Process, wait_until

SLEEP = ("/bin/sleep", "300")
IGNORES_TERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
signal.pause()
"""


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else."""
    with subprocess.Popen(SLEEP) as process:
        yield process
        process.kill()


def sleeper(folder: Path) -> Process:
    """A process that does nothing for long."""
    return Process("sleeper", SLEEP, folder, folder / "sleeper.log")


def identity_of(pid: int) -> Identity:
    """Who has a pid that is surely taken."""
    found = Identity.of(pid)
    assert found is not None
    return found


def test_start_and_stop_may_be_repeated(tmp_path: Path) -> None:
    """`start` starts once and `stop` leaves neither process nor pid file, however often they are called."""
    process = sleeper(tmp_path)
    assert [True, False] == [process.start(), process.start()]
    recorded = process.pid_file.read()
    assert recorded is not None
    process.stop()
    process.stop()
    assert Identity.of(recorded.pid) is None
    assert [tmp_path / "sleeper.log"] == list(tmp_path.iterdir())


def test_a_process_outlives_the_one_that_started_it(tmp_path: Path) -> None:
    """The started process is adopted by init, so that it ends neither with us nor with our terminal."""
    process = sleeper(tmp_path)
    process.start()
    recorded = process.pid_file.read()
    assert recorded is not None
    fields = Path(f"/proc/{recorded.pid}/stat").read_text().rpartition(")")[2].split()
    assert os.getpid() != int(fields[1])
    assert os.getsid(0) != int(fields[3])
    process.stop()


@pytest.mark.parametrize(
    "change",
    [{"started": 1}, {"executable": "/usr/bin/other"}, {"started": 1, "executable": "/usr/bin/other"}],
    ids=["start time", "executable", "both"],
)
def test_a_reused_pid_is_never_signalled(
    tmp_path: Path, bystander: subprocess.Popen[bytes], change: dict[str, object]
) -> None:
    """A pid file whose start time or executable differs belongs to a dead process: its pid is left alone."""
    file = PidFile(tmp_path / "old.pid")
    file.write(replace(identity_of(bystander.pid), **change))  # type: ignore[arg-type]
    assert not file.alive
    assert not file.signal(signal.SIGKILL)
    file.stop(grace=0)
    assert bystander.poll() is None
    assert not file.path.exists()


@pytest.mark.parametrize("content", ["", "4711", "{}", '{"pid": 1}', "[1, 2, 3]"])
def test_an_unreadable_pid_file_means_no_process(tmp_path: Path, content: str) -> None:
    """A damaged or foreign pid file is treated as none, and removed by `stop`."""
    file = PidFile(tmp_path / "x.pid")
    file.path.write_text(content)
    assert not file.alive
    file.stop(grace=0)
    assert not file.path.exists()


def test_a_process_deaf_to_term_is_killed(tmp_path: Path) -> None:
    """After the grace period SIGKILL follows."""
    process = Process("deaf", (sys.executable, "-c", IGNORES_TERM), tmp_path, tmp_path / "deaf.log")
    process.start()
    wait_until("the handler", lambda: "deaf" in process.tail(), seconds=20, processes=[process])
    process.stop(grace=0.05)
    assert not process.alive


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """What can't be executed raises, names the file and records nothing."""
    process = Process("ghost", (str(tmp_path / "ghost"),), tmp_path, tmp_path / "ghost.log")
    with pytest.raises(StartError, match=r"ghost: .*/ghost could not be executed"):
        process.start()
    assert not process.pid_file.path.exists()


def test_waiting_ends_when_the_process_does(tmp_path: Path) -> None:
    """A part that dies while it is waited for is reported at once, with the end of its log."""
    process = Process("brief", (sys.executable, "-c", IGNORES_TERM), tmp_path, tmp_path / "brief.log")
    process.start()
    wait_until("its words", lambda: "deaf" in process.tail(), seconds=20, processes=[process])
    process.pid_file.signal(signal.SIGKILL)
    with pytest.raises(StartError, match=r"brief ended while waiting for a miracle (?s:.*)deaf"):
        wait_until("a miracle", lambda: False, seconds=60, processes=[process])
    process.stop()


def test_waiting_ends_at_its_deadline() -> None:
    """What never comes is an error that names it."""
    with pytest.raises(StartError, match="a miracle: not there after 0 s"):
        wait_until("a miracle", lambda: False, seconds=0)


def test_identity_survives_odd_process_names(tmp_path: Path) -> None:
    """Fields of /proc/PID/stat are found behind a command name with blanks and brackets."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (a) b (c)) {' '.join(['S', *map(str, range(4, 23))])}")
    (tmp_path / "7" / "exe").symlink_to("/opt/tool")
    assert Identity(7, 22, "/opt/tool") == Identity.of(7, tmp_path)
