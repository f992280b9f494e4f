// Ten threads, ten lines.
// cutrace: hello<<<1, 10>>>()

__global__ void hello()
{
    printf("Hello from thread %d\n", threadIdx.x);
}
