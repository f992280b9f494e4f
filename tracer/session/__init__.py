"""The host side: sessions, arrays, modules, arguments, launch lines."""
