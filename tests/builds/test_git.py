"""Checkouts by address and commit: real repositories, by file and by HTTP on loopback."""

import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from golden import compare_cases
from repositories import Repository, git, served

from spsa.builds.git import _laid_out, checkout, checkout_of, commit_of, resolve
from spsa.errors import BuildFailed, InvalidInput

ASKING = "import sys; from spsa.builds.git import checkout; print(checkout(*sys.argv[1:])[0])"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """A cache and settings of git for this test; what was resolved in this process is forgotten."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    yield tmp_path / "cache" / "spsa-tuner" / "sources"
    resolve.cache_clear()
    _laid_out.cache_clear()


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


def test_a_ref_is_checked_out_and_moves_while_a_commit_stays(repository, caplog, monkeypatch):
    """Also after a forced push, with which the server no longer shows the commit."""
    address, first = repository.address, repository.commit("v1", a_rs="one")
    second = repository.commit(a_rs="two")
    for ref, commit, text in [("v1", first, "one"), ("main", second, "two"), (first, first, "one")]:
        folder, found = checkout(address, ref)
        assert (found.commit, (folder / "a.rs").read_text()) == (commit, text)
        assert folder.name == commit
        assert (folder / ".git" / "shallow").is_file()  # and not all that came before
        assert checkout_of(f"{address}@{ref}")[1].commit == commit
    assert str(checkout(address, "v1")[1]) == f"{address} at v1 ({first[:10]})"
    assert str(found) == f"{address} at {first[:10]}"
    assert checkout_of(address)[1].commit == second
    git(repository.work, "commit", "-q", "--amend", "--allow-empty", "-m", "another")
    third = repository.commit("v1", a_rs="three")
    assert checkout(address, "v1")[1].commit == first, "one process, one answer"
    resolve.cache_clear()
    assert checkout(address, "v1")[1].commit == third
    for known in (resolve, _laid_out):
        known.cache_clear()
    repository.bare.rename(repository.bare.with_name("gone.git"))
    assert (checkout(address, second)[0] / "a.rs").read_text() == "two"
    assert checkout(address, "v1")[1].commit == third
    assert f"v1 was {third[:10]} the last time" in caplog.text
    with monkeypatch.context() as nowhere, pytest.raises(BuildFailed, match=r"^`git` is not found"):
        nowhere.setenv("PATH", "/none")
        checkout(address, "other")
    with pytest.raises(BuildFailed, match=r"engine.git cannot be read \(fatal: .*appear.*\); ch"):
        checkout(address, "other")


@pytest.mark.parametrize("over_http", [False, True])
def test_an_abbreviated_hash_is_looked_for_in_all_refs(repository, tmp_path, over_http):
    first = repository.commit(a_rs="one")
    repository.commit(a_rs="two")
    with served(tmp_path) as server:
        address = f"{server}/engine.git" if over_http else repository.address
        assert checkout(address, first[:8])[1].commit == first
        with pytest.raises(InvalidInput, match='no branch or tag "0000000"; name one, or a commit'):
            checkout(address, "0000000")


def test_submodules_are_part_of_a_checkout(repository, tmp_path):
    """Also where their address is relative."""
    network = Repository(tmp_path, "network")
    network.commit(big_nnue="weights")
    git(repository.work, "submodule", "--quiet", "add", "../network.git", "net")
    repository.commit(a_rs="one")
    folder, _ = checkout(repository.address, "main")
    assert (folder / "net" / "big.nnue").read_text() == "weights"
    with served(tmp_path) as server:
        git(repository.work, "submodule", "set-url", "net", network.address)
        repository.commit()
        resolve.cache_clear()
        with pytest.raises(BuildFailed, match="transport 'file' not allowed"):
            checkout(f"{server}/engine.git", "main")


def test_what_is_no_ref_or_no_address_is_refused(repository, tmp_path):
    """Nor one that git might run, or that holds a password, which is not quoted."""
    repository.commit("v1", a_rs="one")

    def shown(files):
        address = files.get("address", repository.address)
        with pytest.raises(InvalidInput) as refused:
            checkout(address, files.get("ref", "main"))
        yield str(refused.value).replace(str(tmp_path), "/here")

    compare_cases(Path(__file__).with_name("refused_by_git.txt"), shown)


def test_a_private_repository_by_the_credentials_of_git(repository, tmp_path):
    commit = repository.commit("v1", a_rs="one")
    with served(tmp_path, "s3cret") as server:
        address = f"{server}/engine.git".replace("//", "//me@")
        with pytest.raises(BuildFailed, match="could not read Password") as refused:
            checkout(address, "v1")
        assert "me@" not in str(refused.value)
        store = tmp_path / "credentials"
        store.write_text(f"{server.replace('//', '//me:s3cret@')}\n")
        store.chmod(0o600)
        git(tmp_path, "config", "--file", "gitconfig", "credential.helper", f"store --file={store}")
        folder, found = checkout(address, "v1")
    assert (found.commit, found.place) == (commit, f"{server}/engine.git")
    assert "s3cret" not in (folder / ".git" / "config").read_text()


def test_a_server_of_plain_files_is_enough(repository, tmp_path):
    first = repository.commit(a_rs="one")
    repository.commit(a_rs="two")
    git(repository.bare, "update-server-info")
    files = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder, _ = checkout(f"http://127.0.0.1:{server.server_port}/engine.git", first)
        server.shutdown()
    assert (folder / "a.rs").read_text() == "one"


def test_what_was_changed_is_made_again(repository):
    commit = repository.commit(a_rs="one")
    folder, _ = checkout(repository.address, commit)
    (folder / "a.rs").write_text("other")
    _laid_out.cache_clear()
    assert (checkout(repository.address, commit)[0] / "a.rs").read_text() == "one"
    (folder / "b.rs").write_text("more")
    assert checkout(repository.address, commit)[0] == folder, "looked at once in a process"
    _laid_out.cache_clear()
    checkout(repository.address, commit)
    assert not (folder / "b.rs").exists()


def test_two_processes_at_once_and_one_that_is_killed(repository, tmp_path, own_cache):
    """Both download, as the server waits for the second; the killed one leaves no checkout."""
    commit = repository.commit(a_rs="one")
    downloads, go_on = threading.Semaphore(0), threading.Event()

    def on_request(path: str) -> None:
        if path.endswith("git-upload-pack") and "?" not in path:
            downloads.release()
            go_on.wait(30)

    with served(tmp_path, on_request=on_request) as server:
        asking = [sys.executable, "-c", ASKING, f"{server}/engine.git", commit]
        own = {"stdout": subprocess.PIPE, "text": True}
        one, two, killed = (subprocess.Popen(asking, **own) for _ in range(3))
        for _ in range(3):
            assert downloads.acquire(timeout=30)
        assert not (own_cache / commit).exists()
        killed.kill()
        go_on.set()
        said = [process.communicate(timeout=60)[0] for process in (one, two, killed)]
    assert said == [f"{own_cache / commit}\n"] * 2 + [""]
    assert (own_cache / commit / "a.rs").read_text() == "one"
    (left,) = own_cache.glob(".draft-*")
    os.utime(left, (0, 0))
    checkout(repository.address, repository.commit(a_rs="two"))
    assert not left.exists(), "a later checkout removes what the killed one left"


def test_a_commit_of_a_work_tree_is_checked_out_beside_it(repository):
    first = repository.commit(a_rs="one")
    inside = repository.work / "inside"
    inside.mkdir()
    (inside / "b.rs").write_text("b")
    second = repository.commit(a_rs="two")
    git(repository.work, "reset", "-q", "--hard", first)  # no branch has the second any more
    folder, found = checkout_of(f"{repository.work}@{second[:8]}")
    assert (found.commit, (folder / "a.rs").read_text()) == (second, "two")
    inside.mkdir(exist_ok=True)
    folder, _ = checkout_of(f"{inside}@{second}")
    assert [path.name for path in folder.iterdir()] == ["b.rs"]
    for wrong in (f"{repository.work}@nothing", str(repository.work), "nowhere@HEAD"):
        with pytest.raises(InvalidInput, match="FOLDER@COMMIT"):
            checkout_of(wrong)
    with pytest.raises(InvalidInput, match=r'\[source\] fatal: no commit "nothing"'):
        checkout_of(f"{repository.work}@nothing")


def test_a_folder_tells_its_commit_and_whether_it_has_changes(repository, tmp_path):
    commit = repository.commit(a_rs="one")
    found = commit_of(repository.work)
    assert str(found) == f"{repository.work} at {commit[:10]}"
    os.utime(repository.work / "a.rs", (1e9, 1e9))
    index = (repository.work / ".git" / "index").read_bytes()
    assert commit_of(repository.work) == found
    assert (repository.work / ".git" / "index").read_bytes() == index, "it writes nothing there"
    (repository.work / "a.rs").write_text("other")
    assert str(commit_of(repository.work)) == f"{repository.work} at {commit[:10]}, with changes"
    inside = repository.work / "ignored"
    inside.mkdir()
    assert commit_of(inside) is None
    assert commit_of(Path(tmp_path)) is None
