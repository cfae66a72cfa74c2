"""What all readers and writers share: a file's text, and its path in a message of one line."""

from rposst_opt.text_files import named, read_text

__all__ = ["named", "read_text"]
