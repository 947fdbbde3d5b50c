-- The ten highest bids on each auction. Equal prices are told apart by the other attributes.
-- NEXMark, Query 19, as nexmark/nexmark puts it for Flink.
-- A closed auction (bid.auction) closes its group; of an open one ten bids are kept.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT *
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
WHERE rank_number <= 10;
