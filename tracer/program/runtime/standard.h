/* Headers of C++ that CUDA's own included up to CUDA 12. They double the time of a compiler, and are
   included when a program does not compile without. */
#ifdef __cplusplus
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>
#endif
