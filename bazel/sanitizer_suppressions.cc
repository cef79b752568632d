// Reports of sanitizers that are not ours to fix, each with its reason. Packaged libraries are not instrumented, so
// order that they establish by atomics of their own is invisible to ThreadSanitizer. Compiled in, since a path given in
// TSAN_OPTIONS would have to be right for every test and every process that a test starts.
//
// Threading: immutable.
#if defined(LOCKSTEP_THREAD_SANITIZER)

extern "C" const char* __tsan_default_suppressions() {
  return
      // gRPC, Abseil, oneDNN and OpenMP: order that they establish inside is not seen. This also hides what our own
      // code does wrong in a callback of gRPC; the loops behind the callbacks are tested without it.
      "race:libgrpc\n"
      "race:grpcpp/\n"
      "race:libabsl_\n"
      "race:libdnnl\n"
      "race:libgomp\n"
      "called_from_lib:libgrpc.so\n"
      "called_from_lib:libgrpc++.so\n"
      "called_from_lib:libgpr.so\n"
      // What gRPC's threads leave of a TLS connection is freed by whoever lets go last; OpenSSL counts that.
      "called_from_lib:libssl.so\n"
      "called_from_lib:libcrypto.so\n"
      "called_from_lib:libdnnl.so\n"
      "called_from_lib:libgomp.so\n"
      "called_from_lib:libabsl_status.so\n"
      "called_from_lib:libabsl_cord.so\n"
      "called_from_lib:libabsl_strings.so\n"
      "called_from_lib:libabsl_graphcycles_internal.so\n"
      "called_from_lib:libabsl_synchronization.so\n"
      // A status that threads share is counted by atomics in libabsl_status; whoever lets go last deletes it.
      "race:absl::*::Status::Unref\n";
}

#endif

#if defined(__SANITIZE_ADDRESS__)

extern "C" const char* __lsan_default_suppressions() {
  return
      // cuDNN creates handles of cuBLASLt for its engines, and gives none back before the process ends.
      "leak:libcublasLt\n";
}

#endif
