#include "data/token_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/new_file.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

class TokenFileWriter {
  public:
    TokenFileWriter(const TokenOrder& order, const fs::path& path)
        : order_(order), file_(path), token_bytes_(order.end_token.value_or(0) > 255 ? 2 : 1) {}

    void add_text(const std::string& path) {
        const InputFile text(path);
        if (text.size_bytes() == 0) throw Error(ErrorKind::BadData, path + ": the file is empty");
        constexpr uint64_t kPiece = uint64_t{1} << 20;
        Bytes piece;
        for (uint64_t at = 0; at < text.size_bytes(); at += piece.size()) {
            piece.resize(static_cast<size_t>(std::min(kPiece, text.size_bytes() - at)));
            text.read(at, piece);
            add_bytes(piece);
        }
        end_document();
    }

    void finish() {
        flush();
        file_.finish();
        if (lengths_.empty()) throw Error(ErrorKind::BadData, "the texts have no line that is not empty");
    }

    /// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
    void write_index(const fs::path& path) const {
        OutputFile index(path);
        std::vector<int64_t> begins, borders = {0};
        int64_t end = 0;
        for (const int32_t length : lengths_) {
            begins.push_back(end * static_cast<int64_t>(token_bytes_));
            end += length;
            borders.push_back(static_cast<int64_t>(begins.size()));
        }
        index.write_text(std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17) + (token_bytes_ == 1 ? '\1' : '\10'));
        const uint64_t counts[] = {lengths_.size(), borders.size()};
        index.write(std::as_bytes(std::span(counts)));
        index.write(std::as_bytes(std::span(lengths_)));
        index.write(std::as_bytes(std::span(begins)));
        index.write(std::as_bytes(std::span(borders)));
        index.finish();
    }

    TokensMade made() const { return {num_tokens_, static_cast<int64_t>(lengths_.size()), token_bytes_}; }

  private:
    void add_bytes(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes) {
            if (order_.lines && byte == std::byte{'\n'}) {
                end_document();
            } else {
                add_token(std::to_integer<int64_t>(byte));
            }
        }
    }

    void add_token(int64_t token) {
        pending_.push_back(static_cast<std::byte>(token & 0xff));
        if (token_bytes_ == 2) pending_.push_back(static_cast<std::byte>(token >> 8));
        ++length_;
        if (pending_.size() >= 1 << 20) flush();
    }

    void end_document() {
        if (length_ == 0) return;
        if (order_.end_token) add_token(*order_.end_token);
        if (length_ > std::numeric_limits<int32_t>::max()) {
            throw Error(ErrorKind::BadData, "a document has " + std::to_string(length_) +
                                                " tokens, and the index holds lengths up to 2147483647; cut the file, "
                                                "or take each line as a document with --lines");
        }
        lengths_.push_back(static_cast<int32_t>(length_));
        num_tokens_ += length_;
        length_ = 0;
    }

    void flush() {
        file_.write(pending_);
        pending_.clear();
    }

    const TokenOrder& order_;
    OutputFile file_;
    size_t token_bytes_;
    Bytes pending_;
    int64_t length_ = 0, num_tokens_ = 0;
    std::vector<int32_t> lengths_;
};

}  // namespace

TokensMade make_token_file(const TokenOrder& order) {
    if (!order.out.ends_with(".bin")) {
        throw Error(ErrorKind::CommandLine,
                    "tokens are written to FILE.bin and FILE.idx (got " + printable(order.out) + ")");
    }
    if (order.end_token && (*order.end_token < 0 || *order.end_token > 65535)) {
        throw Error(ErrorKind::CommandLine,
                    "an end token is a number from 0 to 65535 (got " + std::to_string(*order.end_token) + ")");
    }
    NewFile tokens(order.out, order.overwrite), index(fs::path(order.out).replace_extension(".idx"), order.overwrite);
    TokenFileWriter writer(order, tokens.temporary());
    for (const std::string& text : order.texts) writer.add_text(text);
    writer.finish();
    writer.write_index(index.temporary());
    tokens.publish();
    index.publish();
    return writer.made();
}

}  // namespace vpp
