#include "chief/server/this_process.h"

#include <unistd.h>

namespace lockstep::chief {

TermOwner ThisProcess() {
  TermOwner owner;
  owner.set_pid(getpid());
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  owner.set_host(host);
  return owner;
}

}  // namespace lockstep::chief
