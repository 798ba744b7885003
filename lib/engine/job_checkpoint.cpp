#include "engine/job_checkpoint.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/units.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/part.hpp"
#include "comm/collective.hpp"
#include "engine/shard_transfer.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// A save of which some folder has the manifest.
struct Candidate {
    int64_t step = 0;
    std::string save_id;
    bool replaced = false;  ///< in some folder: a newer save of the step was taking its place
};

/// A folder of a step whose manifest cannot be read, or a candidate that is not whole.
struct Skipped {
    int64_t step = 0;
    CheckpointDamage why;
};

/// What all keepers have by name.
struct Listing {
    std::vector<Candidate> candidates;  ///< newest first
    std::vector<Skipped> unreadable;    ///< by rank
};

/// What a keeper says about one candidate.
struct Answer {
    std::string folder;  ///< empty: this folder has no such checkpoint
    std::string manifest;
    std::vector<ShardState> shards;
    CheckpointDamage problem;  ///< why it counts for nothing here
};

void put_damage(ByteWriter& writer, const CheckpointDamage& damage) {
    writer.put_text(damage.text);
    writer.put(damage.kind);
    writer.put(damage.bars_older);
}

CheckpointDamage get_damage(ByteReader& reader) {
    CheckpointDamage damage;
    damage.text = reader.get_text();
    damage.kind = reader.get<ErrorKind>();
    damage.bars_older = reader.get<bool>();
    return damage;
}

void put_part(ByteWriter& writer, const CheckpointPart& part) {
    writer.put(part.step);
    writer.put(part.replaced);
    writer.put_text(part.manifest ? part.manifest->save_id : "");
    put_damage(writer, part.damage);
}

void add_candidate(std::vector<Candidate>& candidates, const Candidate& found) {
    const auto same = std::ranges::find_if(
        candidates, [&](const Candidate& c) { return c.step == found.step && c.save_id == found.save_id; });
    if (same == candidates.end()) {
        candidates.push_back(found);
    } else {
        same->replaced = same->replaced || found.replaced;
    }
}

/// Every keeper's parts, on every rank.
Listing list_together(Transport& transport, const RunFolders& folders, const std::vector<CheckpointPart>& own) {
    ByteWriter writer;
    for (const CheckpointPart& part : own) put_part(writer, part);
    const std::vector<Bytes> all = all_gather(transport, writer.take());
    Listing listing;
    for (int keeper : folders.keepers()) {
        ByteReader reader(all.at(static_cast<size_t>(keeper)));
        while (!reader.empty()) {
            Candidate found;
            found.step = reader.get<int64_t>();
            found.replaced = reader.get<bool>();
            found.save_id = reader.get_text();
            CheckpointDamage damage = get_damage(reader);
            if (found.save_id.empty()) {
                damage.text = folders.who(keeper) + ": " + damage.text;
                listing.unreadable.push_back({found.step, std::move(damage)});
            } else {
                add_candidate(listing.candidates, found);
            }
        }
    }
    std::ranges::stable_sort(listing.candidates, [](const Candidate& a, const Candidate& b) {
        return std::tuple(-a.step, a.replaced) < std::tuple(-b.step, b.replaced);
    });
    return listing;
}

/// A keeper's own: reads every byte of the shards that its folder has.
Answer answer_for(const Candidate& candidate, const std::vector<CheckpointPart>& own) {
    Answer answer;
    answer.problem.text = "it has no such checkpoint";
    for (const CheckpointPart& part : own) {
        if (part.step != candidate.step) continue;
        if (!part.manifest || part.manifest->save_id != candidate.save_id) {
            answer.problem = part.manifest ? CheckpointDamage{"it has another save of that step"} : part.damage;
            continue;
        }
        answer.problem = {};
        try {
            answer.shards = CheckpointReader(part.folder).shard_states();
            answer.manifest = manifest_to_text(*part.manifest);
            answer.folder = part.folder.string();
        } catch (const Error& error) {
            answer.problem = damage_told_by(error);
        }
        return answer;
    }
    return answer;
}

std::map<int, Answer> exchange_answers(Transport& transport, const RunFolders& folders, const Answer& own) {
    ByteWriter writer;
    for (const std::string& text : {own.folder, own.manifest}) writer.put_text(text);
    put_damage(writer, own.problem);
    for (const ShardState& shard : own.shards) {
        writer.put(shard.is_there);
        writer.put_text(shard.problem);
        writer.put(shard.may_be_whole);
    }
    const std::vector<Bytes> all = all_gather(transport, writer.take());
    std::map<int, Answer> answers;
    for (int keeper : folders.keepers()) {
        ByteReader reader(all.at(static_cast<size_t>(keeper)));
        Answer& answer = answers[keeper];
        answer.folder = reader.get_text();
        answer.manifest = reader.get_text();
        answer.problem = get_damage(reader);
        while (!reader.empty()) {
            ShardState& shard = answer.shards.emplace_back();
            shard.is_there = reader.get<bool>();
            shard.problem = reader.get_text();
            shard.may_be_whole = reader.get<bool>();
        }
    }
    return answers;
}

CheckpointDamage damage_of(const ShardState& shard) {
    if (shard.may_be_whole) return {shard.problem, ErrorKind::Io, true};
    if (!shard.is_there) return {"it is not there", ErrorKind::MissingInput};
    return {shard.problem};
}

/// Why no folder can give the shard: empty when one can.
CheckpointDamage why_not(const std::map<int, Answer>& answers, const RunFolders& folders, size_t shard,
                         const std::string& file) {
    CheckpointDamage why{"", ErrorKind::MissingInput};
    for (const auto& [keeper, answer] : answers) {
        const bool has_part = !answer.folder.empty();
        if (has_part && answer.shards[shard].problem.empty()) return {};
        const CheckpointDamage here = has_part ? damage_of(answer.shards[shard]) : answer.problem;
        why.text += (why.text.empty() ? "" : "; ") + folders.who(keeper) + ": " + here.text;
        if (why.bars_older) continue;
        const bool is_damaged = has_part && here.kind != ErrorKind::MissingInput;
        if (is_damaged || here.bars_older) why.kind = here.kind;
        why.bars_older = here.bars_older;
    }
    why.text = "no run folder of the job holds a whole " + file + " (" + why.text + ")";
    return why;
}

/// From the answers of all keepers; every rank comes to the same end.
std::optional<JobCheckpoint> put_together(const Candidate& candidate, const std::map<int, Answer>& answers,
                                          const RunFolders& folders, const fs::path& place, Skipped& skipped) {
    JobCheckpoint checkpoint;
    const Answer* first = nullptr;
    for (const auto& [keeper, answer] : answers) {
        JobCheckpoint::Part& part = checkpoint.parts[keeper];
        part.is_there = !answer.folder.empty();
        part.folder = part.is_there ? fs::path(answer.folder) : place;
        if (part.is_there && first == nullptr) first = &answer;
        for (const ShardState& shard : answer.shards) part.holds.push_back(shard.problem.empty());
        if (!part.is_there || answer.manifest == first->manifest) continue;
        skipped = {candidate.step,
                   {place.string() + ": " + folders.who(keeper) + " has another manifest of save " + candidate.save_id +
                    " than the ranks before it"}};
        return std::nullopt;
    }
    const std::string where = place.string() + ", save " + candidate.save_id + ": ";
    if (first == nullptr) {
        skipped = {candidate.step, {where}};
        for (const auto& [keeper, answer] : answers) {
            const bool is_first = keeper == answers.begin()->first;
            skipped.why.text += (is_first ? "" : "; ") + folders.who(keeper) + ": " + answer.problem.text;
            if (!answer.problem.bars_older || skipped.why.bars_older) continue;
            skipped.why.kind = answer.problem.kind;
            skipped.why.bars_older = true;
        }
        return std::nullopt;
    }
    checkpoint.manifest = manifest_from_text(first->manifest, place.string());
    const size_t num_shards = checkpoint.manifest.shards.size();
    for (auto& [keeper, part] : checkpoint.parts) part.holds.resize(num_shards, false);
    for (size_t shard = 0; shard < num_shards; ++shard) {
        CheckpointDamage why = why_not(answers, folders, shard, checkpoint.manifest.shards[shard].file);
        if (why.empty()) continue;
        why.text = where + why.text;
        skipped = {candidate.step, std::move(why)};
        return std::nullopt;
    }
    return checkpoint;
}

/// The first candidate that is whole; why the ones before it are not is appended to `skipped`.
std::optional<JobCheckpoint> first_whole(Transport& transport, const RunFolders& folders, const Listing& listing,
                                         const std::vector<CheckpointPart>& own,
                                         const std::function<fs::path(int64_t)>& place, std::vector<Skipped>& skipped) {
    for (const Candidate& candidate : listing.candidates) {
        const Answer answer = folders.keeps(transport.rank()) ? answer_for(candidate, own) : Answer{};
        const auto answers = exchange_answers(transport, folders, answer);
        Skipped reason;
        auto found = put_together(candidate, answers, folders, place(candidate.step), reason);
        if (found) return found;
        skipped.push_back(std::move(reason));
    }
    return std::nullopt;
}

/// Whether a job was killed while its folders committed the save, one after the other: it was never a checkpoint.
bool is_unfinished(Transport& transport, const RunFolders& folders, const CheckpointStore& store,
                   const Skipped& skipped, const Listing& listing) {
    ByteWriter writer;
    bool is_begun = false;
    for (const Candidate& candidate : listing.candidates) {
        if (candidate.step != skipped.step || !folders.keeps(transport.rank())) continue;
        is_begun = is_begun || store.is_unfinished(candidate.step, candidate.save_id);
    }
    writer.put(is_begun);
    for (const Bytes& bytes : all_gather(transport, writer.take())) {
        if (ByteReader(bytes).get<bool>()) return true;
    }
    return false;
}

/// The shard of each tensor. The first folder that has a shard tells its names.
std::map<std::string, size_t> index_of(Transport& transport, const RunFolders& folders,
                                       const JobCheckpoint& checkpoint) {
    const auto& records = checkpoint.manifest.shards;
    ByteWriter writer;
    for (size_t shard = 0; shard < records.size(); ++shard) {
        if (source_of(checkpoint, shard) != transport.rank()) continue;
        const auto& folder = checkpoint.parts.at(transport.rank()).folder;
        for (const std::string& name : CheckpointReader(folder, {records[shard].file}).names()) {
            writer.put(shard);
            writer.put_text(name);
        }
    }
    const std::vector<Bytes> all = all_gather(transport, writer.take());
    std::map<std::string, size_t> index;
    for (int keeper : folders.keepers()) {
        ByteReader reader(all.at(static_cast<size_t>(keeper)));
        while (!reader.empty()) {
            const auto shard = reader.get<size_t>();
            const std::string name = reader.get_text();
            const auto [place, is_new] = index.emplace(name, shard);
            if (is_new || place->second == shard) continue;
            throw Error(ErrorKind::BadData, "step " + std::to_string(checkpoint.manifest.state.step) + ": " +
                                                records[shard].file + " holds the tensor '" + printable(name) +
                                                "' that " + records[place->second].file + " holds too");
        }
    }
    return index;
}

/// By keeper: the shards that the ranks of its folder need.
std::map<int, std::set<size_t>> needed_shards(Transport& transport, const RunFolders& folders,
                                              const std::map<std::string, size_t>& index,
                                              const std::set<std::string>& wanted) {
    std::set<size_t> own;
    for (const std::string& name : wanted) {
        const auto found = index.find(name);
        if (found != index.end()) own.insert(found->second);
    }
    ByteWriter writer;
    for (size_t shard : own) writer.put(shard);
    const std::vector<Bytes> all = all_gather(transport, writer.take());
    std::map<int, std::set<size_t>> needed;
    for (size_t rank = 0; rank < all.size(); ++rank) {
        ByteReader reader(all[rank]);
        std::set<size_t>& shards = needed[folders.keeper_of(static_cast<int>(rank))];
        while (!reader.empty()) shards.insert(reader.get<size_t>());
    }
    return needed;
}

}  // namespace

std::optional<JobCheckpoint> find_newest(Transport& transport, const RunFolders& folders, const CheckpointStore& store,
                                         const Logger& log, std::vector<std::string>& lost) {
    std::vector<CheckpointPart> own;
    if (folders.keeps(transport.rank())) own = parts_of_run(store);
    const Listing listing = list_together(transport, folders, own);
    std::vector<Skipped> skipped;
    auto found = first_whole(
        transport, folders, listing, own, [&](int64_t step) { return store.place_of(step); }, skipped);
    for (const Skipped& other : skipped) {
        if (!is_unfinished(transport, folders, store, other, listing)) lost.push_back(other.why.text);
    }
    for (const Skipped& other : listing.unreadable) {
        if (found && other.step < found->manifest.state.step) continue;
        skipped.push_back(other);
        lost.push_back(other.why.text);
    }
    std::ranges::stable_sort(skipped, std::ranges::greater(), &Skipped::step);
    for (const Skipped& other : skipped) {
        if (other.why.bars_older) refuse_older(other.why);
        if (transport.rank() == 0) log->warn("checkpoint skipped: " + other.why.text);
    }
    return found;
}

JobCheckpoint find_named(Transport& transport, const RunFolders& folders, const fs::path& folder) {
    std::vector<CheckpointPart> own;
    if (folders.keeps(transport.rank())) own.push_back(look_at_part(folder));
    const Listing listing = list_together(transport, folders, own);
    std::vector<Skipped> skipped;
    auto found = first_whole(
        transport, folders, listing, own, [&](int64_t) { return folder; }, skipped);
    if (found) return *std::move(found);
    const Skipped& reason = skipped.empty() ? listing.unreadable.front() : skipped.front();
    throw Error(reason.why.kind, reason.why.text);
}

CheckpointReader bring_shards(Transport& transport, const RunFolders& folders, JobCheckpoint& checkpoint,
                              const std::set<std::string>& wanted, const Logger& log) {
    const Manifest& manifest = checkpoint.manifest;
    const auto index = index_of(transport, folders, checkpoint);
    const auto needed = needed_shards(transport, folders, index, wanted);
    std::vector<ShardTransfer> transfers;
    for (const auto& [keeper, shards] : needed) {
        for (size_t shard : shards) {
            if (checkpoint.parts.at(keeper).holds[shard]) continue;
            const int from = source_of(checkpoint, shard);
            transfers.push_back({shard, from, keeper});
            if (transport.rank() != 0) continue;
            log->info(folders.who(keeper) + " gets " + manifest.shards[shard].file + " of step " +
                      std::to_string(manifest.state.step) + " (" +
                      bytes_text(static_cast<int64_t>(manifest.shards[shard].size_bytes)) + ") from " +
                      folders.who(from));
        }
    }
    transfer_shards(transport, checkpoint, transfers);
    const int keeper = folders.keeper_of(transport.rank());
    const JobCheckpoint::Part& part = checkpoint.parts.at(keeper);
    std::set<std::string> files;
    for (size_t shard = 0; shard < manifest.shards.size(); ++shard) {
        if (part.holds[shard]) files.insert(manifest.shards[shard].file);
    }
    return CheckpointReader(part.folder, std::move(files));
}

}  // namespace vpp
