"""The page: the daemon's web interface. Hand-written modules, served without a build step."""

from wakeful.server.page.files import HEADERS, PAGE, PREFIX, File, read_files

__all__ = ["HEADERS", "PAGE", "PREFIX", "File", "read_files"]
