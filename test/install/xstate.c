/*
 * User-mode Linux before 6.13 keeps 2 kB of floating-point registers for each of its processes. ptrace takes the whole of what the
 * processor has or nothing (EFAULT), and a processor with AMX has 11 kB. Preloaded, this fills up with zeros: "not in use".
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...) {
  va_list arguments;
  va_start(arguments, request);
  long pid = va_arg(arguments, long);
  void *address = va_arg(arguments, void *);
  void *data = va_arg(arguments, void *);
  va_end(arguments);
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
    static char registers[1 << 16];
    const struct iovec *known = data;
    unsigned enabled, used, size, high;
    __cpuid_count(0xd, 0, enabled, used, size, high);
    if (known->iov_len < size && size <= sizeof registers) {
      memset(registers, 0, size);
      memcpy(registers, known->iov_base, known->iov_len);
      struct iovec whole = {registers, size};
      return syscall(SYS_ptrace, request, pid, address, &whole);
    }
  }
  if (request == PTRACE_PEEKUSER || request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA) {
    long word;
    return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
  }
  return syscall(SYS_ptrace, request, pid, address, data);
}
