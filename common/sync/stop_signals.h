// The signals that ask a program to end gracefully, and those that it has to survive.
//
// Threading: thread-safe; BlockStopSignals and SurviveTerminal are for the main thread, before other threads exist.
#ifndef LOCKSTEP_COMMON_SYNC_STOP_SIGNALS_H_
#define LOCKSTEP_COMMON_SYNC_STOP_SIGNALS_H_

#include <pthread.h>
#include <signal.h>

namespace lockstep {

// SIGTERM, SIGINT, and SIGHUP (the terminal or the connection to it is gone), unless this process was started to ignore
// SIGHUP, as nohup does: blocked signals reach sigwait and signalfd even where they are ignored.
inline sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  return set;
}

inline const char* StopSignalName(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP (the terminal is gone)";
    default:
      return "SIGTERM";
  }
}

// Blocks the stop signals, and the one that ends a SignalThread, in this thread and those that it starts.
inline sigset_t BlockStopSignals() {
  sigset_t set = StopSignals();
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

// The signal that asks a thread for its stack (common/liveness). No thread should block it.
inline int StackSignal() { return SIGRTMIN + 6; }

// Ignores SIGPIPE, so that the program survives a reader of its output that goes away, and SIGTTOU, so that it is not
// stopped by writing to a terminal from the background after `stty tostop`.
inline void SurviveTerminal() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_STOP_SIGNALS_H_
