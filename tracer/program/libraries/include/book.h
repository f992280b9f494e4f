/* The programs of the book name it "../common/book.h". */
#include "../common/book.h"
