#pragma once
// Which ranks see one run folder. Hosts may share a disk or not, and no name says so: every rank writes a file with a
// random name and looks for the files of the others.
#include <filesystem>
#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// The folders that one path means on the ranks of a job. The lowest rank that sees a folder is its keeper: it begins,
/// commits and deletes there.
class RunFolders {
  public:
    /// One folder that all ranks see; rank 0 keeps it.
    RunFolders() = default;

    /// Finds out. A rank that cannot write there, or has no such folder, counts as one that sees what others wrote:
    /// with nothing of that kind to see, it has a folder of its own. Where nobody can write, ranks of one host share
    /// what is one folder there. Files that a killed job left are never looked at.
    /// Calls:  collective.
    /// Throws: nothing of its own: whether the folder can be written is found out by who writes into it.
    static RunFolders find(Transport& transport, const std::filesystem::path& folder);

    /// Made by hand: the keeper of each rank's folder, and the names of the ranks' hosts.
    /// Requires: keepers keep their own; as many of both.
    RunFolders(std::vector<int> keepers, std::vector<std::string> hosts);

    /// Whether all ranks see one.
    bool is_one() const;
    int keeper_of(int rank) const { return keepers_.empty() ? 0 : keepers_.at(static_cast<size_t>(rank)); }
    bool keeps(int rank) const { return keeper_of(rank) == rank; }
    /// Ascending; 0 is one of them.
    std::vector<int> keepers() const;
    /// For messages: "rank 1 on beta".
    std::string who(int rank) const;
    /// For messages: "ranks 0, 1 on alpha; rank 2 on beta".
    std::string text() const;

  private:
    std::vector<int> keepers_;  ///< by rank; empty: rank 0 for all
    std::vector<std::string> hosts_;
};

}  // namespace vpp
