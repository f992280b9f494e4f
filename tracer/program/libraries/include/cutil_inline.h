/* The newer name of cutil.h. */
#include "cutil.h"
