/* Programs include it by this name, too. */
#include "cusparse.h"
