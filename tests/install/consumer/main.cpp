#include <sherd/sherd.h>

#include <cstdio>

int main() {
  sherd::CpuStream stream("consumer");
  int seen = 0;
  stream.run([&seen] { seen = 1; });
  stream.synchronize();
  std::printf("ran %d task\n", seen);
  return seen == 1 ? 0 : 1;
}
