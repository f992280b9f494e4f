// Ten threads, ten lines.
// cutrace: hello<<<1, 10>>>()

#include <stdio.h>

__global__ void hello()
{
    printf("Hello from thread %d\n", threadIdx.x);
}
