CREATE TABLE bid (auction BIGINT, channel STRING, price BIGINT, dateTime TIMESTAMP)
USING punctuated_xml OPTIONS (path 'auctions/bid.xml', rowTag 'bid', schemes 'auction; dateTime prefix');

CREATE TABLE fees (channel STRING, fee DECIMAL(4,2)) USING csv OPTIONS (path 'data/fees.csv', header 'true');

CREATE TABLE highest (auction BIGINT, price BIGINT) USING punctuated_xml OPTIONS (path 'highest', rowTag 'lot');
CREATE TABLE owed USING punctuated_xml OPTIONS (path 'owed', rowTag 'fee');

CREATE VIEW dear AS SELECT * FROM bid WHERE price > 1000;

INSERT INTO highest SELECT auction, max(price) FROM dear GROUP BY auction;
INSERT INTO owed SELECT auction, sum(price * fee) AS fees FROM dear JOIN fees USING (channel) GROUP BY auction;
