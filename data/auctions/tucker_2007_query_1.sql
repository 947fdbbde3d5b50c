-- How many high bids there are in each hour, from two streams of bids: high is above $250, and prices are in cents.
-- Tucker et al. 2007, Query 1; the hour is computed from dateTime.
-- Heartbeats (bid.dateTime) of both streams close an hour, and let the union forget bids; closed auctions and bidders
-- (bid.auction, bid.bidder) let it forget some before.
-- Verdict, followed: answers when groups close, keeps what is open.

CREATE TABLE bid1 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid1.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '160m');

CREATE TABLE bid2 (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid2.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '160m');

SELECT hour, COUNT(*) AS bids
FROM (
  SELECT date_trunc('HOUR', dateTime) AS hour, price
  FROM (SELECT * FROM bid1 UNION SELECT * FROM bid2)
)
WHERE price > 25000
GROUP BY hour;
