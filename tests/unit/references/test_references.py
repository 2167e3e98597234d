"""Files and secrets that travel as references."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

import orbit_sdk as orbit
from orbit_sdk.errors import InvalidArgument, NotFound, Unavailable
from orbit_sdk.references import FolderFiles, SecretEnvironment, SecretFolder, secret


@pytest.fixture
def files(tmp_path: Path) -> FolderFiles:
    return FolderFiles(tmp_path / "files")


def test_what_is_put_is_read_again_by_whoever_has_the_reference(files: FolderFiles, tmp_path: Path) -> None:
    ref = files.put(b"a scan", media_type="image/png")
    assert (ref.size, ref.media_type, ref.uri) == (6, "image/png", f"folder:{ref.sha256}")
    other = FolderFiles(tmp_path / "files")
    assert other.read(ref) == b"a scan"
    with other.open(ref) as file:
        assert file.read(2) == b"a "


def test_bytes_a_path_and_an_open_file_give_the_same_reference_and_one_file(
    files: FolderFiles, tmp_path: Path
) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "here").write_bytes(data)
    refs = {files.put(data), files.put(tmp_path / "here"), files.put(io.BytesIO(data))}
    assert len(refs) == 1
    kept = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert [path.name for path in kept] == [refs.pop().sha256]


def test_a_damaged_file_is_never_handed_out(files: FolderFiles) -> None:
    ref = files.put(b"12345")
    files.path(ref).write_bytes(b"12346")
    with pytest.raises(Unavailable, match="damaged"):
        files.read(ref)
    files.put(b"12345")
    assert files.read(ref) == b"12345"
    with pytest.raises(Unavailable):
        files.open(replace(ref, size=4))


@pytest.mark.parametrize("uri", ["s3://bucket/key", "folder:../../etc/passwd", "folder:" + "0" * 64])
def test_a_reference_of_another_store_is_refused(files: FolderFiles, uri: str) -> None:
    with pytest.raises(InvalidArgument, match="uri"):
        files.read(replace(files.put(b""), uri=uri))
    strange = orbit.FileRef(uri="folder:../x", sha256="../x", size=1, media_type="a/b")
    with pytest.raises(InvalidArgument):
        files.path(strange)


def test_a_file_that_is_elsewhere_is_not_found(files: FolderFiles, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        FolderFiles(tmp_path / "other").read(files.put(b"here"))


def test_what_cannot_be_read_leaves_nothing_behind(files: FolderFiles, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.put(tmp_path / "missing")
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


def test_a_secret_is_found_by_its_name_in_a_folder_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = orbit.SecretRef("bank/api")
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "api").write_text("s3cret\n")
    assert SecretFolder(tmp_path).get(ref) == "s3cret"
    assert SecretEnvironment({"ORBIT_SECRET_BANK_API": "other"}).get(ref) == "other"
    monkeypatch.delenv("ORBIT_SECRETS", raising=False)
    monkeypatch.setenv("ORBIT_SECRET_BANK_API", "third")
    assert secret(ref) == "third"
    monkeypatch.setenv("ORBIT_SECRETS", str(tmp_path))
    assert secret(ref) == "s3cret"
    (tmp_path / "bank" / "api").write_text("rotated")
    assert secret(ref) == "rotated"


def test_a_missing_secret_is_named_with_the_place_where_it_should_be(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"bank/api.*ORBIT_SECRET_BANK_API"):
        SecretEnvironment({}).get(orbit.SecretRef("bank/api"))
    with pytest.raises(NotFound, match=str(tmp_path)):
        SecretFolder(tmp_path).get(orbit.SecretRef("bank/api"))


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../up", "bank/../../up", "a//b", ".hidden", "a b", "a\n"]
)
def test_the_name_of_a_secret_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    for store in (SecretFolder(tmp_path), SecretEnvironment({})):
        with pytest.raises(InvalidArgument, match="name"):
            store.get(orbit.SecretRef(name))
