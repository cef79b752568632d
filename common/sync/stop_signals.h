// Which signals ask a program to end in order, and which it has to survive.
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

// Asks one thread of a process that lives for its stack (common/liveness): the only signal that no thread should block.
inline int StackSignal() { return SIGRTMIN + 6; }

// A reader of the output that goes away must not end the program (SIGPIPE), nor a terminal stop it that lets only
// processes of its foreground write (SIGTTOU, after `stty tostop`).
inline void SurviveTerminal() {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_STOP_SIGNALS_H_
