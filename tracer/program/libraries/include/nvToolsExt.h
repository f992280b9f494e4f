/* NVTX as CUDA 12 and older named it; version 3 is headers alone, and has the same functions. */

#ifndef CUTRACE_NVTOOLSEXT_H
#define CUTRACE_NVTOOLSEXT_H

#include <nvtx3/nvToolsExt.h>

#endif
