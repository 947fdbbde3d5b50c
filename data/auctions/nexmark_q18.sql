-- The last bid of each bidder on each auction.
-- NEXMark, Query 18, as nexmark/nexmark puts it for Flink.
-- A closed auction (bid.auction) closes its groups, and a bidder who bids no more (bid.bidder) closes theirs.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, price, channel, url, dateTime, extra
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rank_number FROM bid)
WHERE rank_number <= 1;
