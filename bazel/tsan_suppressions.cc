// ThreadSanitizer reports that are not ours to fix, each with its reason. Packaged libraries are not instrumented, so
// order that they establish by atomics of their own is invisible to it. Compiled in, since a path given in
// TSAN_OPTIONS would have to be right for every test and every process that a test starts.
//
// Threading: immutable.
#if defined(__SANITIZE_THREAD__)

extern "C" const char* __tsan_default_suppressions() {
  return
      // gRPC's pollers, timers and reference counts, and the deadlock graph of Abseil's mutex that they lock.
      "called_from_lib:libgrpc.so\n"
      "called_from_lib:libgrpc++.so\n"
      "called_from_lib:libgpr.so\n"
      "called_from_lib:libabsl_graphcycles_internal.so\n"
      "called_from_lib:libabsl_synchronization.so\n"
      "race:grpc_event_engine::\n"
      "race:grpc_core::\n"
      "race:absl::*::synchronization_internal::\n"
      // A status that threads share is counted by atomics in libabsl_status; whoever lets go last deletes it.
      "race:absl::*::Status::Unref\n"
      // Gloo's event loop keeps an unbound buffer alive through a reference count while it signals a completion, and
      // the destructor waits for that count; the count lives in libgloo.
      "race:gloo::transport::tcp::UnboundBuffer::~UnboundBuffer\n"
      "race:lockstep::worker::Region::~Region\n";
}

#endif
