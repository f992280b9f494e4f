"""The SIMT core: runs kernels warp by warp and writes the rows of their trace."""
