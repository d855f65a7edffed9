"""The page: what a browser shows of a daemon. Hand-written modules, served as they stand, without a build step."""

from wakeful.server.page.files import HEADERS, PAGE, PREFIX, File, read_files

__all__ = ["HEADERS", "PAGE", "PREFIX", "File", "read_files"]
