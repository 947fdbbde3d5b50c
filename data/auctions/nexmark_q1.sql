-- All bids, their prices in euros instead of dollars.
-- NEXMark, Query 1, as nexmark/nexmark puts it for Flink.
-- Nothing is kept, and every punctuation goes on, those of auctions, bidders and times.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)) AS price, dateTime, extra FROM bid;
