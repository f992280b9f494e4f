"""Headers that nvcc's users have and NVRTC has not: preludes and stand-ins, as text of C++.

Which of them a source needs is decided here, too; where NVIDIA's own lie is not.
"""
