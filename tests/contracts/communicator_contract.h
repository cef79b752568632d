// What every Communicator promises, as one suite: a folder that implements it gives a Group factory and runs this.
//
// Threading: owned by the test's main thread; each rank's part runs on a thread of its own.
#ifndef LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_
#define LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_

#include <functional>
#include <memory>
#include <vector>

#include "worker/collectives/communicator.h"

namespace lockstep::worker {

// Forms the ranks of a generation; each call is a fresh one.
using GroupFactory = std::function<std::vector<std::unique_ptr<Communicator>>(int size)>;

// Calls body(rank's communicator) on one thread per rank and joins them.
void OnEveryRank(const std::vector<std::unique_ptr<Communicator>>& group,
                 const std::function<void(Communicator&)>& body);

// The suite, one function per promise; called inside a TEST_CASE.
void CheckSums(const GroupFactory& make, int size);
void CheckGatherAndBroadcast(const GroupFactory& make, int size);
// A rank is far ahead of the others, by calls that it can end without them.
void CheckManyCallsAhead(const GroupFactory& make, int size);
void CheckOrderOfCalls(const GroupFactory& make, int size);
void CheckBadSizes(const GroupFactory& make);
void CheckAbortFromEachSide(const GroupFactory& make, int size);
void CheckUseAfterAbort(const GroupFactory& make, int size);
void CheckDifferentTags(const GroupFactory& make);
void CheckClosingEndsPeers(const GroupFactory& make, int size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_COMMUNICATOR_CONTRACT_H_
