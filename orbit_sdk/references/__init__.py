"""What `FileRef` and `SecretRef` stand for: files in a shared folder, secrets of this process."""

from orbit_sdk.references.files import FolderFiles
from orbit_sdk.references.secrets import SecretEnvironment, SecretFolder, secret

__all__ = ["FolderFiles", "SecretEnvironment", "SecretFolder", "secret"]
