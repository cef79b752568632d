// Prints docs/job_file.md with its reference made anew: `reference docs/job_file.md > new.md`.
#include <fstream>
#include <iostream>
#include <sstream>

#include "common/job/reference.h"

int main(int argc, char** argv) {
  std::ostringstream page;
  if (argc == 2) page << std::ifstream(argv[1]).rdbuf();
  const std::string result = lockstep::WithJobFileReference(page.str());
  if (result.empty()) {
    std::cerr << "usage: reference docs/job_file.md (a page with the two markers of the reference)\n";
    return 64;
  }
  std::cout << result;
  return 0;
}
